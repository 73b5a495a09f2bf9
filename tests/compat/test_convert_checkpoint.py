"""`compat convert-checkpoint`: what matches is shown and written, what does not says why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = pytest.mark.feature("checkpoint exchange")
CONVERTED = """\
VARIABLE              SHAPE   DTYPE    FROM                HOW
beta1_power           []      float32  -                   fresh
beta2_power           []      float32  -                   fresh
global_step           []      int64    global_step         same name, cast from float32
hidden/bias           [6]     float32  biases/Variable     renamed
hidden/bias/Adam      [6]     float32  -                   fresh
hidden/bias/Adam_1    [6]     float32  -                   fresh
hidden/kernel         [8, 6]  float32  weights/Variable    renamed
hidden/kernel/Adam    [8, 6]  float32  -                   fresh
hidden/kernel/Adam_1  [8, 6]  float32  -                   fresh
output/bias           [4]     float32  biases/Variable_1   renamed
output/bias/Adam      [4]     float32  -                   fresh
output/bias/Adam_1    [4]     float32  -                   fresh
output/kernel         [6, 4]  float32  weights/Variable_1  renamed
output/kernel/Adam    [6, 4]  float32  -                   fresh
output/kernel/Adam_1  [6, 4]  float32  -                   fresh
""".splitlines()
UNMATCHED = (
    "error: {} variables of like/{} have no value in old/{}; give each with "
    "--rename=OLD_NAME:NEW_NAME, or keep its value of --like with --fresh=NAME; nothing was written"
)


@pytest.fixture(scope="module")
def said(run_program: RunProgram, programs: Path) -> Any:
    """What the command said, by case; the runtime makes no difference to it."""
    return run_program(programs / "conversions.py", runtime="legacy")


def test_one_checkpoint_alone_is_listed(said: Any) -> None:
    """Also one of TensorFlow before 0.12, which is a single file."""
    listed = """\
VARIABLE            SHAPE   DTYPE
biases/Variable     [6]     float32
biases/Variable_1   [4]     float32
global_step         []      float32
weights/Variable    [8, 6]  float32
weights/Variable_1  [6, 4]  float32

old/model.ckpt-30 holds 5 variables
""".splitlines()
    assert said["lists"] == [[0, listed, []]] * 3


def test_an_original_checkpoint_is_brought_over(said: Any) -> None:
    assert len(said["converts"]) == 3
    for code, out, err, files, right, step, state in said["converts"]:
        assert (code, out, err) == (0, [*CONVERTED, "", "wrote new/model.ckpt-30"], [])
        data = "model.ckpt-30.data-00000-of-00001"
        assert files == ["checkpoint", data, "model.ckpt-30.index"]
        assert right == [True] * 16
        assert step == 30
        assert state[0] == 'model_checkpoint_path: "model.ckpt-30"'


def test_without_a_folder_it_only_shows(said: Any) -> None:
    code, out, err, untouched = said["shows_and_writes_nothing"]
    assert (code, out[:-2], err, untouched) == (0, CONVERTED, [], True)
    assert out[-1] == "all 15 variables have a value; name a folder after OLD to write them"


def test_nothing_is_guessed(said: Any) -> None:
    """Though shapes alone would tell which is which."""
    code, out, err, files = said["guesses_nothing"]
    table, unused = out[: out.index("")], out[out.index("") + 1 :]
    assert code == 2
    assert err == [UNMATCHED.format("15 of 15", "model.ckpt-20", "model.ckpt-30")]
    assert [line.split()[0] for line in table] == [line.split()[0] for line in CONVERTED]
    hidden = "hidden/kernel         [8, 6]  float32  -     no such name; candidates: "
    assert hidden + "weights/Variable" in table
    step = "it is float32, expected int64 (--cast=global_step converts it)"
    assert table[3] == f"global_step           []      int64    -     {step}"
    assert unused[0] == "unused variables of old/model.ckpt-30:"
    assert [line.split()[0] for line in unused[1:]] == [
        "biases/Variable",
        "biases/Variable_1",
        "global_step",
        "weights/Variable",
        "weights/Variable_1",
    ]
    assert files == ["like", "old"]


def test_renames_may_stand_in_a_file(said: Any) -> None:
    assert said["takes_a_file_of_renames"] == [0, [*CONVERTED, "", "wrote new/model.ckpt-30"], []]


def test_equal_names_match_and_the_rest_is_listed(said: Any) -> None:
    code, out, err, files = said["same_names"]
    assert (code, err, files) == (0, [], ["like", "new", "old"])
    assert out == [
        "VARIABLE  SHAPE  DTYPE    FROM  HOW",
        "a         []     float64  a     same name",
        "b         [2]    int64    b     same name",
        "",
        "unused variables of old/model.ckpt-1:",
        "extra  []  float64",
        "",
        "wrote new/model.ckpt",
    ]


def test_names_can_be_swapped(said: Any) -> None:
    assert said["swapped"][0] == 0
    assert said["swapped"][-1] == [2, 4, 1, 3]


@pytest.mark.parametrize(
    ("case", "reasons"),
    [
        ("renamed_away", ["the one of this name is renamed", "renamed"]),
        ("other_shapes", ["v has shape [4], expected [5]", "it has shape [2, 3], expected [3, 2]"]),
        (
            "other_dtypes",
            [
                "it is float64, expected int64, and would not stay the same number",
                "it is float64, expected int64 (--cast=step converts it)",
                "same name, cast from float64",
            ],
        ),
        ("many_of_a_kind", ["no such name; candidates: v0, v1, v2, v3, v4 and 2 more"]),
    ],
)
def test_what_does_not_match_says_why(said: Any, case: str, reasons: list[str]) -> None:
    code, out, err, files = said[case]
    assert code == 2
    table = [*out, ""][1 : [*out, ""].index("")]
    assert [re.split(r"  +", line)[4] for line in table] == reasons
    missing = sum("  -  " in line for line in table)
    count = f"{missing} of {len(table)}"
    assert err == [UNMATCHED.format(count, "model.ckpt-1", "model.ckpt-1")]
    assert files == ["like", "old"]


def test_a_cast_rounds_and_text_of_any_length_is_text(said: Any) -> None:
    code, _, err, _, dtype, text = said["rounds"]
    assert (code, err, dtype, text) == (0, [], "float32", "older")


def test_what_is_not_finite_is_not_taken(said: Any) -> None:
    (old_code, old, _), (fresh_code, fresh, _), files = said["not_finite"]
    assert (old_code, fresh_code) == (2, 2)
    assert old[1].endswith("  -     it has a value that is not finite")
    assert fresh[1].endswith("  -     it has a value that is not finite in --like; candidates: w")
    assert files == ["bad", "fine"]


def test_an_object_based_checkpoint_goes_both_ways(said: Any) -> None:
    (listed, there, back), restored, value = said["object_based"]
    assert (listed[0], there[0], back[0], restored, value) == (0, 0, 0, 30, 30)
    assert there[1][1:3] == [
        "save_counter  []     int64    -            setting of --like",
        "w             []     float32  global_step  renamed",
    ]


def test_slots_follow_their_variables(said: Any) -> None:
    """Here into a scope, by rules for the names."""
    code, _, err, equal, count, report = said["slots_follow_renames"]
    assert (code, err, equal, count) == (0, [], True, 8)
    found = {entry["name"]: [entry["from"], entry["how"]] for entry in report["variables"]}
    assert found["tower/net/w/Adam_1"] == ["net/w/Adam_1", "slot Adam v of net/w"]
    assert found["tower/beta1_power"] == ["beta1_power", "the beta1_power of the optimizer"]
    assert [report[key] for key in ("matched", "missing", "unused")] == [9, 0, []]


def test_weights_of_keras_go_both_ways(said: Any) -> None:
    there, back, equal, numbers, wrong, files = said["keras_weights"]
    assert (there[0], back[0], all(equal), len(equal)) == (0, 0, True, 14)
    assert numbers == pytest.approx([3, 0.01])
    assert [re.split("  +", line)[3:] for line in there[1][3:6]] == [
        ["beta2_power", "number of updates"],
        ["-", "setting of --like"],
        ["net/first/kernel/Adam", "slot Adam m of net/first/kernel"],
    ]
    assert back[1][1].endswith("optimizer/vars/0  0.9 to the power of 4")
    rules = [
        UNMATCHED.format("1 of 14", "", "model.ckpt-1").replace("like/", "like.weights.h5")[7:],
        "NEW=new has another format than --like=like.weights.h5; name a file *.weights.h5",
        "like.meta.weights.h5 is not a file; name one of model.save_weights of Keras 3",
        "--betas=1 is not a pair of numbers in (0, 1); give 0.9,0.999",
        "--rename=net*:first has * in one name only; give as many in the other",
        "--rename=ten/*:* fits no variable of the old checkpoint and one of --like; give names "
        "that both have, with * for the part that is the same",
    ]
    assert wrong == [[2, [f"error: {rule}"]] for rule in rules]
    assert files == ["back", "like.weights.h5", "new.weights.h5", "old"]


def test_a_graph_becomes_a_saved_model(said: Any) -> None:
    """A frozen one, and one with variables, slices of one, and a table."""
    frozen, both, found, equal, report, _ = said["saves_models"]
    assert [run[0] for run in (frozen, both, found)] == [0, 0, 0]
    assert equal == [True, True, True]
    assert frozen[1][1:3] == [
        "input   input_x  input/x:0  [None, 3]  float32",
        "output  logits   logits:0   [None, 4]  float32",
    ]
    assert [line.split()[:2] for line in found[1][1:6]] == [
        *(["input", name] for name in ("input_x", "label", "keep_prob")),
        *(["output", name] for name in ("loss", "word")),
    ]
    assert report["variables"] == ["b", "net/w/part_0", "net/w/part_1"]


GRAPHS = "name a frozen graph, *.pb, or the file *.meta of a checkpoint"
REFUSED_GRAPHS = {
    "no_graph": f"text.pb is not a graph of TensorFlow; {GRAPHS}",
    "not_frozen": "warm.pb is not frozen: it has the variables w without values; name the file "
    "*.meta of its checkpoint",
    "no_output": "--outputs=probs names no operation of frozen.pb; give a name such as logits",
    "key_twice": "--outputs=logits:0 takes the key logits twice; give KEY=NAME",
    "open_input": "the outputs of frozen.pb need the placeholder keep_prob, which --inputs does "
    "not name; name it, or give it a value with --value=keep_prob=NUMBER",
    "no_placeholder": "--value=logits=1 names no placeholder of frozen.pb; give one of input/x, "
    "keep_prob",
    "no_value": "--value=keep_prob=all is not a float32; give a number, true or false",
    "no_checkpoint": "checkpoint lone cannot be read (REASON); keep the files *.index and *.data-* "
    "beside it",
    "no_operation": "old/gone.meta cannot be built on TensorFlow RELEASE (Op type not registered "
    "'MatMuX'); name outputs that do not need it with --outputs",
    "of_checkpoints": "--like is for a checkpoint, not for a graph, and OLD=frozen.pb; leave it "
    "out",
    "of_graphs": "--outputs is for a graph, *.pb or *.meta, and OLD=old; leave it out",
    "no_report": "--report=nowhere/r.json cannot be written; name a file in a folder that exists",
}


def test_a_wrong_graph_is_refused(said: Any) -> None:
    refusals, untouched = said["refuses_graphs"]
    for given, said_so in ((r"\(Uns.*?\)", "(REASON)"), (r"w \d[\d.]+ ", "w RELEASE ")):
        text = refusals["no_checkpoint" if "Uns" in given else "no_operation"][1]
        text[0] = re.sub(given, said_so, text[0])
    assert refusals == {name: [2, [f"error: {why}"]] for name, why in REFUSED_GRAPHS.items()}
    assert untouched


REFUSALS = {
    "no_like": "--like is missing; give a checkpoint of the program that will resume, which a "
    "run of one step writes",
    "renames_without_like": "--like is missing; give a checkpoint of the program that will resume, "
    "which a run of one step writes",
    "new_is_there": "NEW=empty exists; name a new folder",
    "no_checkpoint": "OLD=old/model.ckpt-31 names no checkpoint; name a folder, or a prefix "
    "without .index or .meta, of tf.train.Saver",
    "no_checkpoint_of_like": "--like=missing names no checkpoint; name a folder, or a prefix "
    "without .index or .meta, of tf.train.Saver",
    "a_file_of_it": "checkpoint old/model.ckpt-30.index holds no variables; name a folder, or a "
    "prefix without .index or .meta, of tf.train.Saver",
    "no_list": "folder empty has no checkpoint that its file `checkpoint` lists; give a prefix, "
    "such as empty/model.ckpt-100",
    "no_pair": "--rename=a is not a pair of names; give OLD_NAME:NEW_NAME",
    "no_pair_in_a_file": "renames.txt:2: no pair is not a pair of names; give OLD_NAME:NEW_NAME",
    "no_file": "--renames=nowhere.txt cannot be read (No such file or directory); name a text file "
    "with OLD_NAME:NEW_NAME in each line",
    "no_such_old_name": "--rename=weights/W:hidden/kernel names weights/W, which is not "
    "in the old checkpoint; give one of its names, which are listed if OLD is given alone",
    "no_such_new_name": "--rename=weights/Variable:hidden/kernels names hidden/kernels, which is "
    "not in the checkpoint of --like; give one of its names",
    "twice": "--rename=weights/Variable_1:hidden/kernel names hidden/kernel twice; give "
    "each new name once",
    "renamed_and_fresh": "--rename=weights/Variable:hidden/kernel and --fresh both determine "
    "hidden/kernel; give one of them",
    "nothing_fresh": "--fresh=*/Adagrad fits no variable of the checkpoint of --like; give one of "
    "its names, or a pattern such as '*/Adam'",
    "nothing_cast": "--cast=step fits no variable of the checkpoint of --like; give one of its "
    "names, or a pattern such as '*/Adam'",
    "no_folder_can_be_made": "NEW=renames.txt/new cannot be written (File exists: FILE); name a "
    "folder that can be created",
}


def test_every_refusal_leaves_the_folder_as_it_was(said: Any) -> None:
    refusals, untouched, inside = said["refused"]
    assert set(refusals) == set(REFUSALS)
    assert untouched
    assert inside == []


@pytest.mark.parametrize("case", sorted(REFUSALS))
def test_a_refusal_is_one_line_with_its_remedy(said: Any, case: str) -> None:
    code, _, err = said["refused"][0][case]
    assert code == 2
    plain = [re.sub(r"/\S*/renames.txt", "FILE", line) for line in err]
    assert plain == ["error: " + REFUSALS[case]]
