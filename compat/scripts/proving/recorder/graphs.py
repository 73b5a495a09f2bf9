"""Classifies the operations of a graph: variables, updates, data, random numbers, gradients."""

from __future__ import absolute_import

import re

_APPLIES = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")
_ADDS = re.compile(r"Assign(Add|Sub)|(Resource)?Scatter\w*(Add|Sub|Update|Mul|Div|Min|Max)")
_SETS = re.compile(r"Assign(VariableOp)?$")
_DATA = re.compile(r"QueueDequeue|IteratorGetNext|Unstage$|ReaderRead")
_CHANCE = re.compile(
    r"Random(?!Dataset|SeedGenerator|ShuffleQueue)|TruncatedNormal|ParameterizedTruncated|Multinomial$"
    r"|.*CandidateSampler$|SampleDistorted|StatefulStandardNormal|StatefulUniform|Categorical$"
)
_SWITCHES, _JOINS = re.compile(r"(Ref)?Switch$"), re.compile(r"(Ref)?(Merge|Exit)$")
_COLLECTIONS = ("variables", "local_variables", "trainable_variables")


class Variable(object):
    """A variable: the tensor that reads it, and the operation that sets it.

    Attributes:
      name: The name of its operation.
      tensor: The tensor of its value.
      setter: The operation that initializes it.
      value: The tensor from which `setter` takes the value.
    """

    def __init__(self, graph, variable):
        self.name = variable.op.name
        self.tensor = graph.as_graph_element(variable)
        self.setter = variable.initializer
        self.value = self.setter.inputs[1]
        self.shape = [size.value if hasattr(size, "value") else size for size in _dims(self.value)]


def _dims(tensor):
    shape = tensor.get_shape()
    return list(shape) if shape.ndims is not None else []


def variables(graph):
    """Returns the variables of a graph, by name."""
    by_name = {}
    for collection in _COLLECTIONS:
        for variable in _collected(graph, collection):
            if hasattr(variable, "op") and getattr(variable, "initializer", None) is not None:
                by_name.setdefault(variable.op.name, variable)
    return dict((name, Variable(graph, variable)) for name, variable in by_name.items())


def _collected(graph, collection):
    """Yields the variables of a collection; for one of a distribution strategy, its replicas.

    The strategy's own variable has no initializer, and reading this attribute would add one to
    the graph.
    """
    for variable in graph.get_collection(collection):
        replicas = getattr(variable, "values", None)
        for each in replicas if isinstance(replicas, (list, tuple)) else [variable]:
            yield each


def trainable(graph):
    """Returns the names of the trainable variables, in the order of their creation.

    Integer variables, such as a global step, are left out, since no optimizer can train them. But
    if all are integers, as in a program that adds vectors, all are returned.
    """
    names, whole = [], []
    for variable in _collected(graph, "trainable_variables"):
        group = names if is_float(variable) else whole
        if variable.op.name not in group:
            group.append(variable.op.name)
    return names or whole


def is_float(tensor):
    """Returns whether a tensor has real numbers."""
    return tensor.dtype.base_dtype.name in ("float16", "float32", "float64", "bfloat16")


def is_plain(operation):
    """Returns whether an operation's outputs can be fetched and fed: not in a loop or branch."""
    return operation._get_control_flow_context() is None


def closure(operations, fed=()):
    """Returns the operations that `operations` need to run, in the order of their creation.

    Args:
      operations: Some operations of one graph.
      fed: Names of the tensors that are fed.
    """
    reached, waiting = set(), list(operations)
    while waiting:
        operation = waiting.pop()
        if operation in reached:
            continue
        reached.add(operation)
        waiting.extend(tensor.op for tensor in operation.inputs if tensor.name not in fed)
        waiting.extend(operation.control_inputs)
    return sorted(reached, key=lambda operation: operation._id)


def written(operation):
    """Returns the name of the variable that an operation updates or sets, or None."""
    kinds = (_APPLIES, _ADDS, _SETS)
    if not any(kind.match(operation.type) for kind in kinds) or not len(operation.inputs):
        return None
    target = operation.inputs[0].op
    while target.type in ("Identity", "RefIdentity", "Switch", "RefSwitch", "Enter", "RefEnter"):
        target = target.inputs[0].op
    return target.name


def kind(graph, operations):
    """Returns the effect of a call that runs `operations`: "trains", "sets" variables, or ""."""
    learned, effect = set(trainable(graph)), ""
    gradients = set(g.op for _, _, some in noted(graph) for g in some if g is not None)
    setters = None
    for operation in operations:
        if _APPLIES.match(operation.type):
            return "trains"
        name = written(operation)
        if name not in learned:
            continue
        if _ADDS.match(operation.type):
            return "trains"
        if setters is None:
            setters = set(variable.setter for variable in variables(graph).values())
        if operation not in setters:
            value = closure([operation.inputs[1].op])
            if any(op.name == name or op in gradients for op in value):
                return "trains"
        effect = "sets"
    return effect


def sources(operations):
    """Returns the operations that read data or draw random numbers, which vary between runs.

    They are two lists: the operations whose outputs can be fed, and those that draw random numbers
    but cannot be fed, for example in a loop.
    """
    plain, rest = [], []
    for operation in operations:
        is_data, is_chance = _DATA.match(operation.type), _CHANCE.match(operation.type)
        if not (is_data or is_chance) or "sync_token_q" in operation.name:
            continue
        dtypes = [tensor.dtype.base_dtype.name for tensor in operation.outputs]
        if is_plain(operation) and not set(dtypes) & set(["resource", "variant"]):
            plain.append(operation)
        elif is_chance:
            rest.append(operation)
    return plain, rest


def reads(graph, name):
    """Returns whether a tensor is data that the graph reads, and not random numbers."""
    return bool(_DATA.match(graph.get_tensor_by_name(name).op.type))


def rows(graph, operations, feeds):
    """Returns the names of tensors that gather rows of an array in the graph by fed indices."""
    learned, names = trainable(graph), []
    for operation in operations:
        if operation.type in ("Gather", "GatherV2", "ResourceGather"):
            array, numbers = operation.inputs[:2]
            if numbers.name in feeds and array.op.name not in learned:
                names.append(operation.outputs[0].name)
    return names


def is_handle(graph, name):
    """Returns whether a tensor is the handle of the iterator to read, and not a batch."""
    consumers = graph.get_tensor_by_name(name).consumers()
    return bool(consumers) and all(op.type.startswith("IteratorFrom") for op in consumers)


def note(ys, xs, gradients):
    """Stores a call of `tf.gradients` in its graph."""
    for gradient in gradients:
        if gradient is not None:
            noted(gradient.graph).append((_list(ys), _list(xs), list(gradients)))
            return


def noted(graph):
    """Returns the stored calls of `tf.gradients`, as lists of losses, variables and gradients."""
    if not hasattr(graph, "_compat_gradients"):
        graph._compat_gradients = []
    return graph._compat_gradients


def losses(graph, operations):
    """Returns the losses whose gradients `operations` use."""
    running, by_name = set(operations), {}
    for ys, _, some in noted(graph):
        if any(gradient is not None and gradient.op in running for gradient in some):
            by_name.update((y.name, y) for y in ys if is_float(y) and is_plain(y.op))
    return sorted(by_name.values(), key=lambda tensor: tensor.op._id)


def gradients(graph, operations):
    """Maps the name of each gradient that `operations` use to the name of its variable."""
    running, by_name = set(operations), {}
    for _, xs, some in noted(graph):
        for x, gradient in zip(xs, some):
            if gradient is not None and gradient.op in running and hasattr(x, "op"):
                # The gradient of an embedding consists of rows.
                tensor = getattr(gradient, "values", gradient)
                if is_plain(tensor.op):
                    by_name[tensor.name] = x.op.name
    return by_name


def fetchable_floats(operations):
    """Returns the tensors of real numbers that are computed before any variable is updated.

    Tensors in branches of a condition are left out, since one of the branches has no values.
    """
    updated, branches, tensors = set(), set(), []
    for operation in operations:  # Operations of loops may run late; they are not fetched.
        before = [tensor.op for tensor in operation.inputs] + list(operation.control_inputs)
        if written(operation) is not None or any(op in updated for op in before):
            updated.add(operation)
        elif _SWITCHES.match(operation.type) or (
            not _JOINS.match(operation.type) and any(op in branches for op in before)
        ):
            branches.add(operation)
        elif is_plain(operation):
            tensors += [tensor for tensor in operation.outputs if is_float(tensor)]
    return tensors


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]
