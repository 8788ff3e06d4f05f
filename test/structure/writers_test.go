package structure

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const storePath = module + "/store"

// checked is a package with its types.
type checked struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
	pkg   *types.Package
}

// check reads and type-checks the package in folder, against the compiled form of
// what it imports.
func check(t *testing.T, folder string) *checked {
	t.Helper()
	all, err := list("-export", "-deps", "./"+folder)
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	pkg := all[len(all)-1] // -deps lists a package after all that it imports
	c := &checked{fset: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c.files = append(c.files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok || file == "" {
			return nil, fmt.Errorf("no compiled form of %s", path)
		}
		return os.Open(file)
	})}
	if c.pkg, err = conf.Check(pkg.ImportPath, c.fset, c.files, c.info); err != nil {
		t.Fatal(err)
	}
	return c
}

// function is a function or method with a body.
type function struct {
	name string
	decl *ast.FuncDecl
}

func (c *checked) functions() []function {
	var out []function
	for _, f := range c.files {
		for _, d := range f.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Body != nil {
				out = append(out, function{name: decl.Name.Name, decl: decl})
			}
		}
	}
	return out
}

// TestHeadHasOneWriter (rule 2 of the design): in the store, the field that holds
// HEAD is set by moveHead alone, apart from reading the session's record; and only
// SetHead and append call it.
func TestHeadHasOneWriter(t *testing.T) {
	c := check(t, "store")
	state := c.pkg.Scope().Lookup("State")
	if state == nil {
		t.Fatal("store has no type State")
	}
	field := fieldOf(state.Type(), "Head")
	if field == nil {
		t.Fatal("store.State has no field Head")
	}
	head := func(e ast.Expr) bool {
		sel, ok := e.(*ast.SelectorExpr)
		return ok && c.info.Uses[sel.Sel] == field
	}
	setters, callers := map[string]bool{}, map[string]bool{}
	for _, f := range c.functions() {
		ast.Inspect(f.decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if slices.ContainsFunc(n.Lhs, head) {
					setters[f.name] = true
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND && head(n.X) {
					t.Errorf("%s takes the address of HEAD", c.fset.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "moveHead" {
					callers[f.name] = true
				}
			}
			return true
		})
	}
	for name := range setters {
		if !slices.Contains([]string{"moveHead", "decodeState"}, name) {
			t.Errorf("store: %s sets HEAD: only moveHead may", name)
		}
	}
	for name := range callers {
		if name != "SetHead" && name != "extend" {
			t.Errorf("store: %s calls moveHead: only SetHead and append's extension may", name)
		}
	}
	if !setters["moveHead"] || !callers["SetHead"] || !callers["extend"] {
		t.Errorf("HEAD is set by %v and moved by %v: this test looks for names that are no more", setters, callers)
	}
}

// TestTurnWriterAloneWrites (rule 2 of the design): in package turn, what changes
// the ledger is in the file of TurnWriter.
func TestTurnWriterAloneWrites(t *testing.T) {
	c := check(t, "turn")
	const file = "turn_writer.go"
	writes := 0
	for id, obj := range c.info.Uses {
		if !mutates(obj) {
			continue
		}
		at := c.fset.Position(id.Pos())
		if filepath.Base(at.Filename) == file {
			writes++
			continue
		}
		t.Errorf("%s:%d: %s changes the ledger: only %s may", filepath.Base(at.Filename), at.Line, obj.Name(), file)
	}
	if writes == 0 {
		t.Errorf("%s changes nothing: this test looks for the wrong names", file)
	}
}

// TestTurnsMoveHeadByPolicyAlone (rule 2 of the design): in the file of TurnWriter,
// SetHead is called for a send, a retry and an edit of a reply, which a person asks
// for; and every chain node that a turn writes says whether it may take HEAD along,
// from the one field that holds the policy. No other file of turn describes a node,
// and the policy is set where a turn is admitted and nowhere else.
func TestTurnsMoveHeadByPolicyAlone(t *testing.T) {
	c := check(t, "turn")
	writer := c.pkg.Scope().Lookup("TurnWriter")
	if writer == nil {
		t.Fatal("turn has no type TurnWriter")
	}
	policy := fieldOf(writer.Type(), "advance")
	if policy == nil {
		t.Fatal("TurnWriter has no field advance")
	}
	movers, setters, specs := map[string]bool{}, map[string]bool{}, 0
	for _, f := range c.functions() {
		ast.Inspect(f.decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if obj, ok := c.info.Uses[n.Sel].(*types.Func); ok && obj.Name() == "SetHead" && mutates(obj) {
					movers[f.name] = true
				}
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					if sel, ok := l.(*ast.SelectorExpr); ok && c.info.Uses[sel.Sel] == policy {
						setters[f.name] = true
					}
				}
			case *ast.CompositeLit:
				if !c.isNodeSpec(n) {
					return true
				}
				specs++
				at := c.fset.Position(n.Pos())
				if filepath.Base(at.Filename) != "turn_writer.go" {
					t.Errorf("%s:%d: a node is described outside of TurnWriter's file", filepath.Base(at.Filename), at.Line)
				}
				if kind := member(n, "Kind"); f.name == "editReply" || kind == "KindTool" || kind == "KindCall" {
					return true // a person moves HEAD there; off the chain nothing can
				}
				if member(n, "HeadNeutral") != "advance" {
					t.Errorf("%s:%d: a chain node does not say whether it takes HEAD along", filepath.Base(at.Filename), at.Line)
				}
			}
			return true
		})
	}
	names := func(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
	if got := names(movers); !slices.Equal(got, []string{"begin", "editReply", "retry"}) {
		t.Errorf("HEAD is set in %v", got)
	}
	if got := names(setters); !slices.Equal(got, []string{"Exec", "Send", "startWaiting"}) {
		t.Errorf("the policy of a turn is set in %v", got)
	}
	if specs < 5 {
		t.Errorf("%d nodes are described: this test looks for the wrong type", specs)
	}
}

func (c *checked) isNodeSpec(n *ast.CompositeLit) bool {
	sel, ok := n.Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	obj, ok := c.info.Uses[sel.Sel].(*types.TypeName)
	return ok && typeName(obj.Type()) == "NodeSpec"
}

// member returns the last name in the value of a literal's member, "" if it has none.
func member(n *ast.CompositeLit, name string) string {
	last := ""
	for _, e := range n.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := kv.Key.(*ast.Ident); !ok || key.Name != name {
			continue
		}
		ast.Inspect(kv.Value, func(v ast.Node) bool {
			if id, ok := v.(*ast.Ident); ok {
				last = id.Name
			}
			return true
		})
	}
	return last
}

// TestReadersDoNotWrite: views and the packages below turn read the ledger and
// change nothing in it.
func TestReadersDoNotWrite(t *testing.T) {
	for _, folder := range []string{"projection", "model"} {
		c := check(t, folder)
		for id, obj := range c.info.Uses {
			if mutates(obj) {
				t.Errorf("%s: %s changes the ledger", c.fset.Position(id.Pos()), obj.Name())
			}
		}
	}
}

// mutates reports whether obj is something of package store that changes the
// ledger: a function or method that takes a Request, a method of the transaction
// that does not only read, or the checkpoint of streamed text.
func mutates(obj types.Object) bool {
	f, ok := obj.(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != storePath {
		return false
	}
	if f.Name() == "Checkpoint" {
		return true
	}
	sig := f.Signature()
	if recv := sig.Recv(); recv != nil && typeName(recv.Type()) == "Tx" {
		return !slices.Contains([]string{"Session", "Now", "Info", "Queue"}, f.Name())
	}
	for v := range sig.Params().Variables() {
		if typeName(v.Type()) == "Request" {
			return true
		}
	}
	return false
}

// typeName returns the name of a type of package store, behind a pointer or not.
func typeName(t types.Type) string {
	if n, ok := deref(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == storePath {
		return n.Obj().Name()
	}
	return ""
}

func deref(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// fieldOf returns the field of struct type t called name, or nil.
func fieldOf(t types.Type, name string) types.Object {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for f := range s.Fields() {
		if f.Name() == name {
			return f
		}
	}
	return nil
}
