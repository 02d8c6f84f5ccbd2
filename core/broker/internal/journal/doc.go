// Package journal remembers what happened to a broker lately, so that somebody can be told why things are as they are: who made a
// group rebalance, which follower fell behind, why a partition has the leader that it has.
//
// An [Event] is a fact with a type of its own; sentences are made when somebody asks. The rooms of the broker record events at
// turning points, never per record or per request. A [Journal] is bounded twice: in all, and for each subject, so that one noisy
// group can't push out what happened to everything else. It lives in memory and is empty after a start.
//
// What isn't its business: counting (metrics), what is true now (the rooms know), and drawing conclusions (package explain).
package journal
