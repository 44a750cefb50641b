// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How exactly a saved state must fit the model that it is loaded into.
#pragma once

namespace kzero {

/// What load_checkpoint and ShardedOptimizer::load_state do with what the file,
/// or the state in memory (called file here too), and the model do not share.
/// strict: throws, naming it.
/// partial: loads what they share, by name. Parameters that the file lacks, or
/// has with another shape or type (see OtherType), stay as they are, state and
/// count included.
/// Where the file has other state than the model needs (another rule, other
/// options, a parameter that was frozen), value and main parameter are loaded
/// (the latter widened from the value if need be), and state and count start
/// anew. A parameter may have changed its group. Groups that the file lacks,
/// and hyperparameters that the rule does not take, stay the program's.
/// Counts of steps and the loss scale are the file's.
enum class Match { strict, partial };

/// What they do with a group whose rule in the file is another one than in the
/// program.
/// refuse: throws, naming both.
/// start_anew: loads the parameters of the group, main parameters too; their
/// state and count start anew, with the hyperparameters of the program.
enum class OtherRule { refuse, start_anew };

/// What they do with a parameter whose number type in the file is another one
/// than in the program.
/// refuse: throws, naming both; with Match::partial the parameter stays as it
/// is.
/// convert: loads it all the same, from the file's main parameter where there
/// is one, else from its value, with its state and count. A 16-bit parameter
/// gets this number as its main parameter and is rounded from that; any other
/// gets it as its value. State is converted between float32 and float64. Where
/// the types are the same, the bits are. What is rounded goes to the nearest
/// number, ties to even.
enum class OtherType { refuse, convert };

/// How the elements of a checkpoint come to its file, and back. The file is the
/// same.
/// direct: every rank writes and reads what it owns, at its place.
/// gather: rank 0 writes and reads everything; the other ranks need not see the
/// file.
/// automatic: direct where every rank sees the file, else gather.
enum class Engine { automatic, gather, direct };

/// Those of the rank that has the file or the state are used; engine and verify
/// are for files, and the same on every rank.
struct LoadOptions {
  Match match = Match::strict;
  OtherRule other_rule = OtherRule::refuse;
  OtherType other_type = OtherType::refuse;
  /// Whether only values and main parameters are loaded (a main parameter that
  /// the file lacks is the value, widened), with state and counts of updates
  /// that start anew. Groups, rules, hyperparameters, the loss scale and counts
  /// of steps are the program's, and the file need not have any.
  bool weights_only = false;
  Engine engine = Engine::automatic;
  /// Whether the checksums of the arrays are compared. Those of everything else
  /// always are.
  bool verify = true;
};

}  // namespace kzero
