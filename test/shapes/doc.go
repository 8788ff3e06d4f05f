// Package shapes has views of graphs for the tests of whoever draws them, so that all
// draw the same: package projection/drawing, and the plugins of editors.
//
// The shapes themselves are text: projection/drawing/testdata has the views, as
// [ParseView] reads them, each with its drawing. A new shape goes there.
package shapes
