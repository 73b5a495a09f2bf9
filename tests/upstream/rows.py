"""TensorFlow's test files of the old API, and their tests that do not pass with our names."""

from __future__ import annotations

import collections
from typing import Mapping, NamedTuple

RELEASE = "2.21"  # TensorFlow's own names fail some of these tests there, other ones elsewhere.
# Those fail with TensorFlow's own names as well: on this release, or on the legacy runtime.
# Those of the modern runtime, with TensorFlow's own names, fail so besides.
NATIVE = "by the release"
RUNTIME = "by resource variables"
# One line, which names all variables that differ; the error's type is TensorFlow's as well.
LINE = "by our message about a checkpoint of another model"
TRAINING = "tensorflow/python/training/"
CONTRIB = "tensorflow/contrib/"


class Row(NamedTuple):
    """A file of tests."""

    name: str  # On the page.
    file: str
    tests: int
    failing: Mapping[str, str] = {}  # By what each of them does not pass.
    runtime: str = "legacy"
    ahead: int = 0  # Calls that are gathered, from the first one on.

    @property
    def cells(self) -> tuple[str, int, int, str]:
        """Those of its line on the page."""
        causes = collections.Counter(self.failing.values()).most_common()
        differs = "; ".join(f"{count} {cause}" for cause, count in causes)
        return self.name, self.tests, self.tests - len(self.failing), differs


def because(why: str, case: str, *tests: str) -> dict[str, str]:
    """Returns the tests of a case, each with the same reason."""
    return {f"{case}.{test}": why for test in tests}


OF_SAVER = {
    **because(RUNTIME, "SaverTest", "testBasicsWithListOfVariables", "testInt64", "testReshape"),
    **because(RUNTIME, "MetaGraphTest", "testClearExtraneousSavers"),
    **because(RUNTIME, "MetaGraphTest", "testMultiSaverCollection"),
    **because(NATIVE, "MetaGraphTest", "testStrippedOpListDef"),
    **because(RUNTIME, "TrackableCompatibilityTests", "testGraphChangedForRestoreErrorRaised"),
}
OF_MANAGER = {
    **because(
        RUNTIME,
        "SessionManagerTest",
        "testPrepareSessionFails",
        "testPrepareSessionWithCyclicInitializer",
        "testPrepareSessionWithInsufficientReadyForLocalInitCheck",
        "testPrepareSessionWithPartialInitOp",
        "testPrepareSessionWithReadyForLocalInitOp",
        "testRecoverSession",
        "testRecoverSessionFailsStillRunsLocalInitOp",
        "testRecoverSessionNoChkptStillRunsLocalInitOp",
        "testRecoverSessionWithReadyForLocalInitOp",
        "testRecoverSessionWithReadyForLocalInitOpFailsToReadyLocal",
        "testWaitForSessionInsufficientReadyForLocalInitCheck",
        "testWaitForSessionLocalInit",
    ),
    **because(
        RUNTIME,
        "ObsoleteSessionManagerTest",
        "testPrepareSessionFails",
        "testRecoverSession",
        "testWaitForSessionReturnsNoneAfterTimeout",
    ),
}
ROWS = [
    Row(
        "`Saver`",
        TRAINING + "saver_test.py",
        82,
        {
            "SaverTest.testSaveToNonexistingPath": ("by our message, where the folder is a file"),
            **because(LINE, "SaverTest", "testSaveRestoreAndValidateVariableDtype"),
            **because(
                LINE,
                "SaveRestoreWithVariableNameMap",
                "testNonReshapeResourceVariable",
                "testNonReshapeVariable",
            ),
            **because(
                LINE,
                "TrackableCompatibilityTests",
                "testLoadFromObjectBasedGraph",
                "testVariableNotFoundErrorRaised",
            ),
            **OF_SAVER,
        },
    ),
    Row(
        "`Supervisor`",
        TRAINING + "supervisor_test.py",
        34,
        because(RUNTIME, "SupervisorTest", "testSetupFail"),
    ),
    Row("its loops", TRAINING + "basic_loops_test.py", 3),
    Row(
        "slim's training loop",
        CONTRIB + "slim/python/slim/learning_test.py",
        34,
        {
            **because(RUNTIME, "TrainTest", "testTrainWithTrace"),
            **because(NATIVE, "CreateTrainOpTest", "testUseUpdateOps"),
            **because(
                NATIVE,
                "TrainTest",
                "testTrainWithSessionWrapper",
                "testTrainingSubsetsOfVariablesOnlyUpdatesThoseVariables",
            ),
        },
    ),
    Row("slim's parallel reader", CONTRIB + "slim/python/slim/data/parallel_reader_test.py", 7),
    Row(
        "`Server` and `ClusterSpec`",
        TRAINING + "server_lib_test.py",
        27,
        because(RUNTIME, "GrpcServerTest", "testShapeChangingIsolateState"),
    ),
    Row("a server's containers", TRAINING + "server_lib_multiple_containers_test.py", 1),
    Row(
        "a container that is cleared",
        TRAINING + "server_lib_same_variables_clear_container_test.py",
        1,
    ),
    Row("variables that are cleared", TRAINING + "server_lib_same_variables_clear_test.py", 1),
    Row(
        "variables that are not cleared",
        TRAINING + "server_lib_same_variables_no_clear_test.py",
        1,
        because(RUNTIME, "SameVariablesNoClearTest", "testSameVariablesNoClear"),
    ),
    Row("a job with gaps", TRAINING + "server_lib_sparse_job_test.py", 1),
    Row("clusters in a process", TRAINING + "localhost_cluster_performance_test.py", 1),
    Row(
        "`MonitoredSession`",
        TRAINING + "monitored_session_test.py",
        98,
        because(
            "by a strategy's coordinator, whose context our sessions do not read",
            "MonitoredTrainingSessionWithDistributeCoordinatorTest",
            "test_checkpoint_hook_disabled",
            "test_checkpoint_hook_enable_on_non_chief_with_collective_ops",
            "test_summary_hook_disabled",
        ),
    ),
    Row("`SyncReplicasOptimizer`", TRAINING + "sync_replicas_optimizer_test.py", 5),
    Row("`replica_device_setter`", TRAINING + "device_setter_test.py", 10),
    Row("its strategies", CONTRIB + "training/python/training/device_setter_test.py", 5),
    Row("session manager", TRAINING + "session_manager_test.py", 27, OF_MANAGER),
]
# After `compat.select_runtime("modern")`, whose sessions are TensorFlow's own.
MODERN = [
    Row(name, file, tests, failing, "modern")
    for name, file, tests, failing in (
        ("monitored sessions", TRAINING + "monitored_session_test.py", 98, {}),
        (
            "their hooks",
            TRAINING + "basic_session_run_hooks_test.py",
            68,
            because(NATIVE, "ResourceSummarySaverHookTest", "test_save_steps"),
        ),
        (
            "supervisor",
            TRAINING + "supervisor_test.py",
            34,
            {
                **because(RUNTIME, "SupervisorTest", "testSetupFail"),
                **because(
                    NATIVE,
                    "SupervisorTest",
                    "testDefaultGlobalStep",
                    "testStandardServicesWithGlobalStep",
                ),
            },
        ),
        ("saver", TRAINING + "saver_test.py", 82, OF_SAVER),
        ("session manager", TRAINING + "session_manager_test.py", 27, OF_MANAGER),
        (
            "session",
            "tensorflow/python/client/session_test.py",
            100,
            {
                **because(
                    NATIVE,
                    "SessionTest",
                    "testDefaultLogDevicePlacement",
                    "testFeedIndexedSlices",
                    "testFeedIndexedSlicesWithoutDenseShape",
                    "testFeedSparsePlaceholderConstantShape",
                    "testInvalidArgument",
                    "testMultipleInteractiveSessionsWarning",
                    "testNonInteractiveSessionNesting",
                    "testNotEntered",
                    "testStringFeed",
                    "testStringFeedWithUnicode",
                    "testStringFetch",
                ),
                **because(RUNTIME, "SessionTest", "testOperationRunMethod"),
                **because(
                    "by functions, which leave no trace in `RunMetadata`",
                    "SessionTest",
                    "testMakeCallableOnOperationWithRunOptions",
                ),
            },
        ),
    )
]
# With calls that are gathered: the same, but for what is named here besides.
_GATHERED = {
    "their hooks": {
        **because(
            "by copies, which are in the graph",
            "CheckpointSaverHookTest",
            "test_summary_writer_defs",
        ),
        # The fake writer of that test stays.
        **because("by the failure of another", "ProfilerHookTest", "test_run_metadata_saves"),
    },
    "session": {},
}
AHEAD = [
    row._replace(ahead=5, failing={**row.failing, **_GATHERED[row.name]})
    for row in MODERN
    if row.name in _GATHERED
]
