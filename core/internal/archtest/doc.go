// Package archtest holds the rules of the house as tests: who may import whom, where state may live, how large files
// and interfaces get. Each rule carries its reason, is seen to fail on a small tree made for that, and fails too when
// it no longer applies to anything, so that none can rot unseen.
//
// What isn't its business: style that a linter knows, and whether the code works.
package archtest
