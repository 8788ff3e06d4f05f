// Package doctor is the commands convls doctor and convls version: what this
// program is, where its store, settings and log are, which providers have keys and
// answer, and whether the ledger is sound.
//
// Nothing is changed. The store is opened read-only, and only if there is one; a
// store that another process has is described from outside. No key is ever shown:
// the report says where one was found.
package doctor
