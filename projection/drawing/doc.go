// Package drawing draws the graph of a conversation: as text for a terminal, as SVG,
// as DOT and as JSON. The server lays the graph out (projection); here a
// [protocol.GraphView] becomes a picture, and nothing is placed anew.
//
// Previews, names and ids are untrusted: what could control a terminal, or end an
// element or a string of the format, never reaches the output. Nothing here is
// recursive, and the work is linear in the rows times the lanes that are drawn.
package drawing
