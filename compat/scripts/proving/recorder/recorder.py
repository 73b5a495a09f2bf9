"""Records the training calls of a program, or repeats those of another run."""

from __future__ import absolute_import

import collections
import functools
import json
import os
import sys
import threading

import numpy

from . import arrays, graphs, sessions

_MOST_BYTES = 400 * 1000 * 1000  # Limit of the size of all snapshots of variables, on disk.


class Recorder(object):
    """Writes a line, and files of arrays, for each training call of this process.

    Args:
      folder: The folder for the record.
      replay: The folder of the run to repeat; None for the first run.
      steps: The number of training calls after which the program ends.
      details: Numbers of the calls, from 1, whose operations are all recorded.
      every: Whether all calls that fetch numbers are recorded, for a program that does not train.
      each: Whether each call starts from the variables that the other run had before that call.
      gathers: Whether one of the two runs makes several calls of a session as one (`--ahead`). Then
        nothing is read between calls; fetched values and variables are read after the last call.

    Attributes:
      names: For variables with other names here, their names in the other run.
      makes_group: A function that returns whether the current call of this thread is not one of the
        program, but makes several of its calls as one; such a call is not recorded.
    """

    def __init__(self, folder, replay, steps, details, every=False, each=False, gathers=False):
        self._folder, self._replay, self._steps = folder, replay, steps
        self._details, self._every, self.each = details, every, each
        self._gathers, self._waiting = gathers, []
        self._count, self._bytes, self._lock, self._kinds = 0, 0, threading.RLock(), {}
        self._seen, self.names = {}, {}
        self.makes_group = lambda: False
        self._known = _lines(replay) if replay else []
        self._file = open(os.path.join(folder, "calls.jsonl"), "w")

    def wrap(self, run):
        """Returns a `BaseSession._do_run` that records."""

        @functools.wraps(run)
        def wrapped(session, handle, targets, fetches, feeds, options, metadata):
            def plain():
                return run(session, handle, targets, fetches, feeds, options, metadata)

            if handle is not None or self.makes_group():
                return plain()
            call = sessions.Call(session, run, fetches, targets, feeds)
            plan = self._plan(call)
            if plan.kind == "trains":
                with self._lock:
                    return self._train(call, plan, options, metadata)
            if plan.kind == "sets":
                self._seen.pop(id(session), None)
            return plain()

        return wrapped

    def note_cluster(self):
        """Records that the program has joined a cluster."""
        self._write({"cluster": True})

    def end(self, code):
        """Records the exit code of the program."""
        self.look_at_all()
        self._write({"end": code, "calls": self._count})

    def _plan(self, call):
        key = (id(call.graph),) + call.key()
        if key not in self._kinds:
            self._kinds[key] = _Plan(call, self._every)
        return self._kinds[key]

    def next(self):
        """Returns the number of the next training call, and its record in the run to repeat.

        Ends the program after the last call of that run. Raises the error of that call, if it
        raised one.
        """
        number = self._count + 1
        if not self._replay:
            return number, None
        if number > len(self._known):
            self.stop({"more": number})
        known = self._known[number - 1]
        if known["raised"]:
            self.done({"call": number, "raised": known["raised"]})
            raise _error(known["raised"])
        return number, known

    def _train(self, call, plan, options, metadata):
        number, known = self.next()
        self._begin(call, number, known)
        record = {"call": number, "raised": "", "uncontrolled": list(plan.uncontrolled)}
        try:
            feeds = self._feeds(call, plan, number, known, record)
            looked = {} if self._gathers else self._look(call, plan, feeds, number, record)
            values = call.run(call.fetches, call.targets, feeds, options, metadata)
        except Exception as error:
            record["raised"] = type(error).__name__
            self.done(record)
            raise
        record["losses"] = list(plan.losses)
        record["renamed"] = self.names
        record["learned"] = [self.names.get(name, name) for name in graphs.trainable(call.graph)]
        look = functools.partial(self._look_after, call, plan, dict(looked), values, record)
        if self._gathers:
            self._waiting.append((record, look))
        else:
            look(True)
        self.done(record)
        return values

    def _look_after(self, call, plan, looked, values, record, is_last):
        """Adds the values of a call to its record and, if `is_last`, saves the variables."""
        number = record["call"]
        looked.update(zip(call.fetches, values))
        record["scalars"] = [
            [name, float(numpy.mean(looked[name]))]
            for name in plan.losses + [name for name in call.fetches if name not in plan.losses]
            if name in looked and _is_number(looked[name], name in plan.losses)
        ]
        is_small = self._bytes < _MOST_BYTES or number in self._details or self.each
        if is_last and (is_small or self._gathers):
            after = sessions.read_variables(call, self.names, graphs.trainable(call.graph))
            self._bytes += sum(value.nbytes for value in after.values())
            arrays.save(self.path("after", number), after)
        if self._every:
            fetched = dict((name, looked[name]) for name in call.fetches if _is_array(looked[name]))
            record["fetched"] = [name for name in call.fetches if name in fetched]
            arrays.save(self.path("fetched", number), fetched)

    def look_at_all(self, *_):
        """Completes the records of gathered calls, whose values have not been read yet."""
        waiting, self._waiting = self._waiting, []
        for place, (record, look) in enumerate(waiting, 1):
            try:
                look(place == len(waiting))
            except Exception as error:  # The group of the call has failed.
                record["raised"] = type(error).__name__
            self._write(record)

    def done(self, record):
        """Records a call; ends the program after the last call that is compared."""
        if record["raised"] or not self._gathers:
            self.look_at_all()
            self._write(record)
        self._count = record["call"]
        if self._count >= self._steps:
            self.look_at_all()
            self.stop({"end": 0, "calls": self._count, "limit": self._steps})

    def _begin(self, call, number, known):
        """Loads the variables that the other run recorded before this call, if there are any.

        Then records the variables if `each` is set, if this is the session's first training call,
        or if the program has set variables since the last one.
        """
        if self._replay:
            values = arrays.load(self.path("begin", number, True))
            if values:
                shapes = graphs.variables(call.graph)
                shapes_here = collections.OrderedDict(
                    (name, shapes[name].shape) for name in graphs.trainable(call.graph)
                )
                self.names, why = sessions.matched(shapes_here, values, known["learned"])
                if why:
                    self.stop({"mismatch": why, "call": number})
                sessions.write_variables(call, values, self.names)
        if self.each or self._seen.get(id(call.session)) is None:
            # Keep the session, so that no later one gets the same `id`.
            self._seen[id(call.session)] = call.session
            # The second run starts from all variables of the first one, so it records its trainable
            # ones only.
            only = graphs.trainable(call.graph) if self._replay else None
            begin = sessions.read_variables(call, self.names, only)
            arrays.save(self.path("begin", number), begin)

    def _feeds(self, call, plan, number, known, record):
        """Returns the feeds of a call: the batch, and the data and random numbers of the graph."""
        if known is None:
            drawn = {}
            if plan.sources:
                drawn = dict(zip(plan.sources, call.run(plan.sources, (), call.feeds)))
            fed = dict(call.feeds)
        else:
            stored = arrays.load(self.path("feeds", number, True))
            # An experiment has its batches in the graph: as defaults of placeholders, or as rows of
            # arrays.
            inputs = [name for name in plan.inputs if name not in call.feeds] or plan.rows
            fed = [name for name in call.feeds if not graphs.is_handle(call.graph, name)]
            inputs = inputs or _in_order(call, fed)
            fed, missing = arrays.paired(known["fed"], inputs, stored, call.takes)
            theirs, ours = known["drawn"], plan.sources
            # The other run feeds these values; this one reads them from queues.
            if known["fed"] and not inputs:
                theirs, ours = known["fed"] + theirs, plan.used_sources
            drawn, uncontrolled = arrays.paired(theirs, ours, stored, call.takes)
            if known["fed"]:
                self._draw(call, plan, number, stored, dict(drawn, **fed))
            drawn = call.converted(drawn)
            # The other run has no values for these random numbers.
            record["uncontrolled"] += uncontrolled
            if missing:
                record["unfed"] = missing
            fed = dict(call.feeds, **fed)
        record["fed"], record["drawn"] = (
            _in_order(call, fed),
            [n for n in plan.sources if n in drawn],
        )
        record["used"] = [name for name in record["drawn"] if name in plan.used_sources]
        feeds = dict(fed, **drawn)
        if known is None:
            arrays.save(self.path("feeds", number), feeds)
        return feeds

    def _draw(self, call, plan, number, stored, fed):
        """Records the batch that the graph draws for a call, and the fed one that replaces it."""
        batches = [name for name in fed if name in plan.batches]
        if not batches:
            return
        drawn = call.values([plan.batches[name] for name in batches], call.feeds)
        # Use the names of the other run.
        theirs = dict((id(array), name) for name, array in stored.items())
        by_name = dict((theirs[id(fed[name])], drawn.get(plan.batches[name])) for name in batches)
        arrays.save(self.path("given", number), dict((name, stored[name]) for name in by_name))
        known = dict((name, array) for name, array in by_name.items() if array is not None)
        arrays.save(self.path("drawn", number), known)

    def _look(self, call, plan, feeds, number, record):
        """Returns the losses that the program does not fetch, by name.

        Records the sizes of gradients, and all operations of a call whose number is in `details`.
        """
        looked = {}
        names = [name for name in plan.losses if name not in call.fetches]
        names += plan.gradients if self.each else []
        if number in self._details:
            operations = plan.all_operations
            floats = [tensor.name for tensor in graphs.fetchable_floats(operations)]
            looked = call.values(floats, feeds)
            arrays.save(self.path("floats", number), looked)
            with open(self.path("operations", number)[:-4] + ".json", "w") as file:
                json.dump(_described(call.graph, operations, self.names), file)
            names = [name for name in names if name not in looked]
        if names:
            looked = dict(looked, **call.values(names, feeds))
        record["slopes"] = dict(
            (
                self.names.get(of, of),
                float(numpy.linalg.norm(looked[name])) / looked[name].size ** 0.5,
            )
            for name, of in plan.gradients.items()
            if name in looked and looked[name].size
        )
        return dict((name, looked[name]) for name in plan.losses if name in looked)

    def path(self, kind, number, of_other=False):
        """Returns the file of a call's arrays of one kind, such as "feeds", in either run."""
        folder = self._replay if of_other else self._folder
        return os.path.join(folder, "%s-%04d.npz" % (kind, number))

    def _write(self, record):
        self._file.write(json.dumps(record, sort_keys=True) + "\n")
        self._file.flush()

    def stop(self, record):
        """Writes a last record, and ends the process at once, even if other threads still run."""
        self._write(record)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


class _Plan(object):
    """The tensors and operations to record in calls with the same fetches, targets and feeds."""

    def __init__(self, call, every):
        operations = call.operations()
        self.kind = graphs.kind(call.graph, operations)
        if every and not self.kind and any(map(_is_numeric, call.dtypes())):
            self.kind = "trains"
        if self.kind != "trains":
            return
        losses = graphs.losses(call.graph, operations)
        self.losses = [tensor.name for tensor in losses]
        more = graphs.closure([tensor.op for tensor in losses], call.feeds)
        self.all_operations = sorted(set(operations + more), key=lambda operation: operation._id)
        nodes = [op for op in self.all_operations if op.type == "PlaceholderWithDefault"]
        # The tensor with the batch that the graph itself draws, by the tensor that is fed instead.
        self.batches = dict((op.outputs[0].name, op.inputs[0].name) for op in nodes)
        self.inputs = [operation.outputs[0].name for operation in nodes]
        self.gradients = graphs.gradients(call.graph, operations)
        plain, rest = graphs.sources(self.all_operations)
        outputs = [tensor for operation in plain for tensor in operation.outputs]
        self.sources = [tensor.name for tensor in outputs]
        self.used_sources = [tensor.name for tensor in outputs if tensor.consumers()]
        self.uncontrolled = [operation.name for operation in rest]
        read = [name for name in self.used_sources if graphs.reads(call.graph, name)]
        self.rows = graphs.rows(call.graph, operations, call.feeds)
        self.batches.update((name, name) for name in read + self.rows)


def _described(graph, operations, names):
    written = [graphs.written(operation) for operation in operations]
    gradients = graphs.gradients(graph, operations)
    return {
        "gradients": dict((tensor, names.get(of, of)) for tensor, of in gradients.items()),
        "operations": [
            {
                "name": operation.name,
                "type": operation.type,
                "inputs": [tensor.name for tensor in operation.inputs],
                "outputs": [tensor.name for tensor in operation.outputs],
                "writes": names.get(name, name),
            }
            for operation, name in zip(operations, written)
        ],
    }


def _in_order(call, names):
    """Returns names of tensors in the order of their creation."""
    return sorted(names, key=lambda name: call.graph.get_tensor_by_name(name).op._id)


def _is_number(value, is_loss):
    value = numpy.asarray(value)
    return value.dtype.kind == "f" and (value.size == 1 or (is_loss and value.size > 0))


def _is_array(value):
    return _is_numeric(numpy.asarray(value).dtype)


def _is_numeric(dtype):
    return dtype.kind in "fiub"


def _error(name):
    from tensorflow.python.framework import errors

    kind = getattr(errors, name, None)
    if kind is None:
        return RuntimeError("%s, as in the other run" % name)
    return kind(None, None, "as in the other run")


def _lines(folder):
    with open(os.path.join(folder, "calls.jsonl")) as file:
        records = [json.loads(line) for line in file]
    return [record for record in records if "call" in record]
