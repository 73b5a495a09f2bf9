"""Training calls of a program on the modern runtime, which runs steps and has no session."""

from __future__ import absolute_import

import collections
import copy
import functools
import json

import numpy

from . import arrays, graphs, sessions


def install(recorder):
    """Patches the session of the modern runtime."""
    from compat.runtime.modern.session import ModernSession

    many, now = ModernSession.run_many, ModernSession.run_now

    @functools.wraps(many)
    def run_many(self, step, *stacked, **options):
        if not _trains(step):
            return many(self, step, *stacked, **options)
        values = {}
        for i in range(options.get("count") or len(stacked[0]) if stacked else 1):
            rows = [numpy.asarray(array)[i : i + 1] for array in stacked]
            values = _train(
                recorder,
                self,
                step,
                rows,
                lambda step, rows: many(self, step, *rows),
                lambda found: found,
            )
        return values

    @functools.wraps(now)
    def run_now(self, step, *given, **options):
        if not _trains(step):
            return now(self, step, *given, **options)
        return _train(
            recorder,
            self,
            step,
            [numpy.asarray(array)[numpy.newaxis] for array in given],
            lambda step, rows: now(self, step, *[row[0] for row in rows], **options),
            lambda found: found.values,
        )

    ModernSession.run_many, ModernSession.run_now = run_many, run_now


def _trains(step):
    """Whether a step updates variables that are trained, or the global step."""
    return step.trains or step._lifted.learns


def _train(recorder, session, step, rows, run, values_of):
    """Runs and records a training call; each of `rows` is an array with one row an update.

    What the other run has read and drawn in this call is fed in the place of what this one would.
    """
    from compat._tensorflow import tf

    number, known = recorder.next()
    variables = dict(session._runtime.variables())
    trainable = [name for name, variable in variables.items() if variable.trainable]
    learned = [name for name in trainable if graphs.is_float(variables[name])] or trainable
    record = {"call": number, "raised": "", "uncontrolled": [], "losses": []}
    # The other run has them also after a call that sets them.
    begin = arrays.load(recorder.path("begin", number, True)) if known else {}
    if number == 1 or recorder.each or begin:
        if known:
            own = collections.OrderedDict((name, list(variables[name].shape)) for name in learned)
            recorder.names, why = sessions.matched(own, begin, known["learned"])
            if why:
                recorder.stop({"mismatch": why, "call": number})
        for name, variable in variables.items():
            value = begin.get(sessions.translated(name, recorder.names))
            if value is not None:
                variable.assign(numpy.asarray(value, variable.dtype.as_numpy_dtype))
        arrays.save(recorder.path("begin", number), _read(variables, recorder.names))
    if known:
        stored = arrays.load(recorder.path("feeds", number, True))
        names = _names(step)
        rows = [
            stored[name][numpy.newaxis] if name in stored else row for name, row in zip(names, rows)
        ]
        record["unfed"] = [name for name in names if name not in stored]
        ran, drawn, record["uncontrolled"] = _controlled(step, known, stored)
        found = run(ran, rows + [value[numpy.newaxis] for value in drawn])
    else:
        found = run(step, rows)
    values = dict(values_of(found))
    for name, parts in step.structures.items():
        values.update(zip(tf.nest.flatten(parts), tf.nest.flatten(values.pop(name, parts))))
    tensors = step._lifted._packed.tensors
    record["scalars"] = [
        [tensors[name].name, float(numpy.ravel(value)[0])]
        for name, value in sorted(values.items())
        if name in tensors
        and tensors[name].dtype.is_floating
        and numpy.size(value) == 1
        and name != "global_step"  # Which a step has with its values, fetched or not.
    ]
    record["learned"] = [recorder.names.get(name, name) for name in learned]
    arrays.save(recorder.path("after", number), _read(variables, recorder.names))
    with open(recorder.path("operations", number)[:-4] + ".json", "w") as file:
        json.dump({"gradients": {}, "operations": []}, file)
    recorder.done(record)
    return found


def _controlled(step, known, stored):
    """Returns the step with its sources fed, what to feed them, and the names of all others.

    Sources are elements of its dataset, and what is read from queues or drawn in its graph.
    """
    lifted = step._lifted
    graph = lifted._function.graph
    ends = [graph.get_tensor_by_name(name).op for name in lifted._outputs]
    plain, rest = graphs.sources(graphs.closure(ends))
    names = [tensor.name for operation in plain for tensor in operation.outputs]
    element = []
    if step.streams:
        given = len(step._definition.per_worker_data) + len(step._definition.signature)
        element = list(lifted._arguments[: len(lifted._arguments) - given])
    # What is fed there is an element here; a queue gives a number with each.
    fed = [] if step._definition.signature else known["fed"]
    for theirs in (fed + known["drawn"], fed + known["used"]):
        drawn, left = arrays.paired(theirs, element + names, stored)
        if not left:
            break
    if set(left) & set(element):
        element = []
        drawn, left = arrays.paired(known["drawn"], names, stored)
    left += [operation.name for operation in rest]
    if not drawn:
        return step, [], left
    ready = step.__dict__.setdefault("_compat_fed", {})
    if tuple(drawn) not in ready:
        # As `select` does, but for the tensors of hooks, which remain those of the step.
        fed = ready[tuple(drawn)] = copy.copy(step)
        own = lifted._arguments[len(element) :]
        fed._queues, fed._loops = None, {}
        fed._lifted = lifted._with(lifted._packed, list(drawn), own)
        fed.streams = step.streams and not element
        specs = [graph.get_tensor_by_name(name) for name in fed._lifted.fed]
        signature = list(step._definition.signature) + specs
        fed._definition = step._definition._replace(signature=signature)
    fed = ready[tuple(drawn)]
    return fed, [drawn[name] for name in fed._lifted.fed], left


def _read(variables, names):
    return dict((sessions.translated(n, names), v.numpy()) for n, v in variables.items())


def _names(step):
    """Returns the names that placeholders would have in a graph, of which a step may take some."""
    found, unnamed = [], 0
    for spec in step._of_one_graph[0]._definition.signature:
        name = spec.name
        if not name:
            name = "Placeholder_%d" % unnamed if unnamed else "Placeholder"
            unnamed += 1
        found.append((spec, name + ":0"))
    names = []
    for spec in step._definition.signature:
        place = next(i for i, (known, _) in enumerate(found) if known is spec)
        names.append(found.pop(place)[1])
    return names
