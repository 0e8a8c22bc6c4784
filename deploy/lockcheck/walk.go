package main

import (
	"go/ast"
	"go/types"
	"slices"
)

// walker goes through one function in the order of its statements.
type walker struct {
	*checker
	info *types.Info
	to   *function
	// parameters of the function: what is given for them is looked at there
	parameters map[types.Object]bool
	// literals are the names of function literals that variables of the function hold
	literals map[types.Object]string
}

// block goes through statements with the locks that are held before them; it gives those held after, and whether what
// follows is not reached from here.
func (w *walker) block(statements []ast.Stmt, held []string) (after []string, ends bool) {
	for _, s := range statements {
		if held, ends = w.statement(s, held); ends {
			return held, true
		}
	}
	return held, false
}

func (w *walker) statement(s ast.Stmt, held []string) (after []string, ends bool) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		return w.block(s.List, held)
	case *ast.LabeledStmt:
		return w.statement(s.Stmt, held)
	case *ast.ExprStmt:
		if one, is := s.X.(*ast.CallExpr); is {
			if lock, locks, unlocks := w.lock(one); locks {
				return append(slices.Clone(held), lock), false
			} else if unlocks {
				return slices.DeleteFunc(slices.Clone(held), func(h string) bool { return h == lock }), false
			}
		}
	case *ast.DeferStmt:
		if _, _, unlocks := w.lock(s.Call); unlocks {
			return held, false // to the end of the function
		}
		for _, a := range s.Call.Args {
			w.expression(a, held)
		}
		w.call(s.Call, held)
		return held, false
	case *ast.GoStmt: // not here; its arguments are
		for _, a := range s.Call.Args {
			w.expression(a, held)
		}
		return held, false
	case *ast.ReturnStmt:
		for _, r := range s.Results {
			w.expression(r, held)
		}
		return held, true
	case *ast.BranchStmt:
		return held, true
	case *ast.IfStmt:
		if s.Init != nil {
			held, _ = w.statement(s.Init, held)
		}
		w.expression(s.Cond, held)
		branches := []ast.Stmt{s.Body, &ast.EmptyStmt{}}
		if s.Else != nil {
			branches[1] = s.Else
		}
		return w.either(branches, held)
	case *ast.ForStmt:
		if s.Init != nil {
			held, _ = w.statement(s.Init, held)
		}
		w.expression(s.Cond, held)
		w.block(s.Body.List, held)
		if s.Post != nil {
			w.statement(s.Post, held)
		}
		return held, false
	case *ast.RangeStmt:
		if _, channel := w.info.TypeOf(s.X).Underlying().(*types.Chan); channel {
			w.add(call{at: s.Pos(), why: "a channel", locks: held})
		}
		w.expression(s.X, held)
		w.block(s.Body.List, held)
		return held, false
	case *ast.SwitchStmt:
		if s.Init != nil {
			held, _ = w.statement(s.Init, held)
		}
		w.expression(s.Tag, held)
		return w.either(append([]ast.Stmt{&ast.EmptyStmt{}}, s.Body.List...), held)
	case *ast.TypeSwitchStmt:
		return w.either(append([]ast.Stmt{&ast.EmptyStmt{}}, s.Body.List...), held)
	case *ast.CaseClause:
		for _, e := range s.List {
			w.expression(e, held)
		}
		return w.block(s.Body, held)
	case *ast.SelectStmt:
		if !slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool { return c.(*ast.CommClause).Comm == nil }) {
			w.add(call{at: s.Pos(), why: "a channel", locks: held})
		}
		return w.either(s.Body.List, held)
	case *ast.CommClause: // that it waits is said by its select
		return w.block(s.Body, held)
	}
	w.expression(s, held)
	return held, false
}

// either is after one of several statements: a lock is held that is held after one of them.
func (w *walker) either(branches []ast.Stmt, held []string) (after []string, ends bool) {
	ends = true
	for _, b := range branches {
		one, ended := w.statement(b, held)
		if ended {
			continue
		}
		ends = false
		for _, lock := range one {
			if !slices.Contains(after, lock) {
				after = append(after, lock)
			}
		}
	}
	return after, ends
}

// expression looks for calls in what is evaluated, function literals included: who gets one may call it.
func (w *walker) expression(n ast.Node, held []string) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			return !w.hold(n)
		case *ast.Ident: // called, or given to someone
			if name := w.literals[w.info.Uses[n]]; name != "" {
				w.add(call{at: n.Pos(), callee: name, locks: held})
			}
		case *ast.FuncLit:
			w.block(n.Body.List, held)
			return false
		case *ast.UnaryExpr:
			if n.Op.String() == "<-" {
				w.add(call{at: n.Pos(), why: "a channel", locks: held})
			}
		case *ast.SendStmt:
			w.add(call{at: n.Pos(), why: "a channel", locks: held})
		case *ast.KeyValueExpr:
			if key, is := n.Key.(*ast.Ident); is && w.isQuiet(w.info.Uses[key]) {
				w.putInto(n.Value)
				return false
			}
		case *ast.CallExpr:
			w.call(n, held)
		}
		return true
	})
}

// hold notes a function literal that a variable is made to hold: it waits where it is called. False: it is none.
func (w *walker) hold(s *ast.AssignStmt) bool {
	if len(s.Lhs) != 1 || len(s.Rhs) != 1 {
		return false
	}
	variable, is := s.Lhs[0].(*ast.Ident)
	literal, is2 := s.Rhs[0].(*ast.FuncLit)
	if !is || !is2 || w.info.Defs[variable] == nil {
		return false
	}
	name := w.place(literal.Pos())
	w.literals[w.info.Defs[variable]] = name
	w.function(w.info, name, literal.Type, literal.Body)
	return true
}

// isQuiet says whether a field's comment, or that of the function whose parameter it is, says "no I/O".
func (w *walker) isQuiet(o types.Object) bool {
	v, is := o.(*types.Var)
	return is && w.quiet[w.place(v.Pos())+" "+v.Name()]
}

// putInto notes a function that is put into a field that says "no I/O".
func (w *walker) putInto(value ast.Expr) {
	at := w.place(value.Pos())
	name := at
	if literal, is := value.(*ast.FuncLit); is {
		w.function(w.info, name, literal.Type, literal.Body)
	} else if f := w.named(value); f != nil {
		name = f.FullName()
	}
	w.put = append(w.put, struct{ at, what string }{at, name})
}

// named is the function that an expression names; nil: a value, a conversion or a builtin.
func (w *walker) named(e ast.Expr) *types.Func {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return w.named(e.X)
	case *ast.IndexExpr:
		return w.named(e.X)
	case *ast.IndexListExpr:
		return w.named(e.X)
	case *ast.Ident:
		return origin(w.info.Uses[e])
	case *ast.SelectorExpr:
		return origin(w.info.Uses[e.Sel])
	}
	return nil
}

// origin is a function without its type arguments.
func origin(o types.Object) *types.Func {
	if f, is := o.(*types.Func); is {
		return f.Origin()
	}
	return nil
}

// lock is the mutex that a call locks or unlocks, as it is written.
func (w *walker) lock(one *ast.CallExpr) (lock string, locks, unlocks bool) {
	s, is := one.Fun.(*ast.SelectorExpr)
	if f := w.named(one.Fun); is && f != nil {
		locks, unlocks = turnsLock(f)
		return types.ExprString(s.X), locks, unlocks
	}
	return "", false, false
}

// call notes what a call may wait for.
func (w *walker) call(one *ast.CallExpr, held []string) {
	if kind := w.info.Types[one.Fun]; kind.IsType() || kind.IsBuiltin() {
		return
	}
	if _, literal := one.Fun.(*ast.FuncLit); literal {
		return // its body is looked at where it stands
	}
	f := w.named(one.Fun)
	if f == nil {
		w.value(one, held)
		return
	}
	if strings := len(one.Args) > 0 && f.Pkg() != nil && f.Pkg().Path() == "fmt"; strings {
		if writer := w.info.TypeOf(one.Args[0]); writer != nil && w.prints(f, writer.String()) {
			w.add(call{at: one.Pos(), why: f.FullName(), locks: held})
			return
		}
	}
	if waits(f) {
		w.add(call{at: one.Pos(), why: short(f.FullName()), locks: held})
		return
	}
	w.add(call{at: one.Pos(), callee: f.FullName(), locks: held})
	parameters := f.Type().(*types.Signature).Params()
	for i := range min(parameters.Len(), len(one.Args)) {
		if w.isQuiet(parameters.At(i)) {
			w.putInto(one.Args[i])
		}
	}
}

// prints says whether a function of fmt writes to something that may wait.
func (w *walker) prints(f *types.Func, writer string) bool {
	switch f.Name() {
	case "Fprint", "Fprintf", "Fprintln":
		return writer != "*strings.Builder" && writer != "*bytes.Buffer"
	}
	return false
}

// value notes a call of a function value, of which nobody knows what it does.
func (w *walker) value(one *ast.CallExpr, held []string) {
	if kind := w.info.TypeOf(one.Fun); isClock(kind) || kind.String() == "context.CancelFunc" {
		return
	}
	switch f := one.Fun.(type) {
	case *ast.SelectorExpr:
		if w.isQuiet(w.info.Uses[f.Sel]) {
			return
		}
	case *ast.Ident: // a parameter is looked at where it is given, unless it is called under a lock that is taken here
		o := w.info.Uses[f]
		if w.isQuiet(o) || w.literals[o] != "" || len(held) == 0 && w.parameters[o] {
			return
		}
	}
	w.add(call{at: one.Pos(), why: "the function value " + types.ExprString(one.Fun), locks: held})
}

func (w *walker) add(one call) { w.to.calls = append(w.to.calls, one) }
