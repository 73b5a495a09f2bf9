"""`tf.contrib.seq2seq`: decoders, attention and beam search, with the original results.

cell = tf.contrib.seq2seq.AttentionWrapper(cell, tf.contrib.seq2seq.LuongAttention(8, memory))
helper = tf.contrib.seq2seq.TrainingHelper(inputs, lengths)
decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(batch, tf.float32))
outputs, state, lengths = tf.contrib.seq2seq.dynamic_decode(decoder)
"""

from __future__ import annotations

from compat.contrib.seq2seq.attention import (
    AttentionMechanism,
    BahdanauAttention,
    LuongAttention,
    hardmax,
)
from compat.contrib.seq2seq.beams import (
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
)
from compat.contrib.seq2seq.decoders import (
    BasicDecoder,
    BasicDecoderOutput,
    Decoder,
    dynamic_decode,
)
from compat.contrib.seq2seq.inputs import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    TrainingHelper,
)
from compat.contrib.seq2seq.monotonic import (
    BahdanauMonotonicAttention,
    LuongMonotonicAttention,
    monotonic_attention,
    monotonic_probability_fn,
    safe_cumprod,
)
from compat.contrib.seq2seq.scheduled import (
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
)
from compat.contrib.seq2seq.sequence_loss import sequence_loss_3d as sequence_loss
from compat.contrib.seq2seq.trees import gather_tree, gather_tree_from_array, tile_batch
from compat.contrib.seq2seq.wrapper import AttentionWrapper, AttentionWrapperState

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "BasicDecoder",
    "BasicDecoderOutput",
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "CustomHelper",
    "Decoder",
    "FinalBeamSearchDecoderOutput",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "LuongAttention",
    "LuongMonotonicAttention",
    "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
    "dynamic_decode",
    "gather_tree",
    "gather_tree_from_array",
    "hardmax",
    "monotonic_attention",
    "monotonic_probability_fn",
    "safe_cumprod",
    "sequence_loss",
    "tile_batch",
]
