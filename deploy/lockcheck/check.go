package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// call is what a function does that may wait.
type call struct {
	at     token.Pos
	callee string   // full name of a function; of the module, it waits if that does
	why    string   // it waits for this in any case; empty: see callee
	locks  []string // held meanwhile
}

// function is what is known of one function, or of a function literal that is put where no I/O may be.
type function struct {
	calls []call
}

type checker struct {
	fset      *token.FileSet
	functions map[string]*function
	quiet     map[string]bool             // fields, and parameters of functions, whose comment says "no I/O", by place
	put       []struct{ at, what string } // functions that are put into those
}

// check finds I/O under locks, a line for each.
func check(folder, pattern string) ([]string, error) {
	fset, sources, err := load(folder, pattern)
	if err != nil {
		return nil, err
	}
	c := &checker{fset: fset, functions: map[string]*function{}, quiet: map[string]bool{}}
	for _, s := range sources {
		for _, file := range s.files {
			c.fields(file)
		}
	}
	for _, s := range sources {
		for _, file := range s.files {
			for _, d := range file.Decls {
				if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
					c.function(s.info, s.info.Defs[f.Name].(*types.Func).FullName(), f.Type, f.Body)
				}
			}
		}
	}
	return c.found(), nil
}

// place is where something stands, as file and line.
func (c *checker) place(at token.Pos) string {
	p := c.fset.Position(at)
	return fmt.Sprintf("%s:%d", filepath.Base(filepath.Dir(p.Filename))+"/"+filepath.Base(p.Filename), p.Line)
}

// fields notes which fields of structs, and which functions of what they are given, say "no I/O".
func (c *checker) fields(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if f, is := n.(*ast.FuncDecl); is && strings.Contains(f.Doc.Text(), "no I/O") {
			for _, p := range f.Type.Params.List {
				for _, name := range p.Names {
					c.quiet[c.place(name.Pos())+" "+name.Name] = true
				}
			}
		}
		if f, is := n.(*ast.Field); is && strings.Contains(f.Doc.Text()+f.Comment.Text(), "no I/O") {
			for _, name := range f.Names {
				c.quiet[c.place(name.Pos())+" "+name.Name] = true
			}
		}
		return true
	})
}

func (c *checker) function(info *types.Info, name string, kind *ast.FuncType, body *ast.BlockStmt) {
	w := &walker{checker: c, info: info, to: &function{}, parameters: map[types.Object]bool{},
		literals: map[types.Object]string{}}
	for _, p := range kind.Params.List {
		for _, named := range p.Names {
			w.parameters[info.Defs[named]] = true
		}
	}
	c.functions[name] = w.to
	w.block(body.List, nil)
}

// waits is what a function waits for, with the functions on the way there; empty: for nothing.
func (c *checker) waits(name string, seen map[string]bool) string {
	f := c.functions[name]
	if f == nil || seen[name] {
		return ""
	}
	seen[name] = true
	for _, one := range f.calls {
		if why := c.reason(one, seen); why != "" {
			return why
		}
	}
	return ""
}

func (c *checker) reason(one call, seen map[string]bool) string {
	if one.why != "" {
		return one.why
	}
	if why := c.waits(one.callee, seen); why != "" {
		return short(one.callee) + " → " + why
	}
	return ""
}

func (c *checker) found() (lines []string) {
	for _, f := range c.functions {
		for _, one := range f.calls {
			if why := c.reason(one, map[string]bool{}); len(one.locks) > 0 && why != "" {
				lines = append(lines, fmt.Sprintf("%s: %s is held over %s", c.place(one.at), strings.Join(one.locks,
					" and "), why))
			}
		}
	}
	for _, p := range c.put {
		if why := c.waits(p.what, map[string]bool{}); why != "" {
			lines = append(lines, fmt.Sprintf("%s: the field says \"no I/O\", what is put into it does %s", p.at, why))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// short is a name without the path of its package.
func short(name string) string { return name[strings.LastIndex(name, "/")+1:] }
