package bundle

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	classes  = 4       // law direct has a value for each
	maxValue = 1 << 40 // of law direct: bytes, far beyond any window
	// controls is the length of congestion_controls in policies/rwnd-fair/numbers.yaml, whose numbers action cc takes.
	controls = 9
)

// laws are those that agents know, with what each may be applied to.
var laws = map[string][]string{"fair_window": {"flow"}, "direct": {"flow", "ap", "destination"}, "mark": {"station"},
	"backlog_cap": {"flow"}}

// withoutModel are laws that go by what they measure.
var withoutModel = []string{"mark", "backlog_cap"}

// actions are those that agents know, with what each may be done to.
var actions = map[string][]string{"rwnd": {"flow", "ap"}, "mark": {"station"}, "cc": {"destination"}}

// law is what is done with the models' answers.
type law struct {
	name, subject, action string
	values                []int64
}

func readLaw(message []byte) (*law, error) {
	var l law
	err := fields(message, 4, []protowire.Number{4}, func(number protowire.Number, f field) bool {
		isBytes := f.kind == protowire.BytesType
		switch number {
		case 1:
			l.name = string(f.bytes)
			return isBytes && isText(f.bytes)
		case 2:
			l.subject = string(f.bytes)
			return isBytes && isText(f.bytes)
		case 3:
			l.action = string(f.bytes)
			return isBytes && isText(f.bytes)
		case 4:
			if f.kind == protowire.VarintType {
				l.values = append(l.values, protowire.DecodeZigZag(f.number))
				return true
			}
			for packed := f.bytes; len(packed) > 0; {
				value, n := protowire.ConsumeVarint(packed)
				if n < 0 {
					return false
				}
				l.values, packed = append(l.values, protowire.DecodeZigZag(value)), packed[n:]
			}
			return isBytes
		}
		return true
	})
	return &l, err
}

// wrong is what makes it no law for models of these kinds, by role; empty: nothing. No law is nil.
func (l *law) wrong(kinds map[string]string) string {
	if l == nil {
		return "no law"
	}
	wanted := 0
	if l.name == "direct" {
		wanted = classes
	}
	outside := func(value int64) bool {
		return value < 0 || value > maxValue || l.action == "cc" && value >= controls
	}
	switch {
	case !slices.Contains(laws[l.name], l.subject):
		return fmt.Sprintf("law `%s` on `%s`; this service knows fair_window on flow, direct on flow, ap and "+
			"destination, mark on station, backlog_cap on flow", l.name, l.subject)
	case !slices.Contains(actions[l.action], l.subject):
		return fmt.Sprintf("action `%s` on `%s`; this service knows rwnd on flow and ap, mark on station, "+
			"cc on destination",
			l.action, l.subject)
	case len(l.values) != wanted || slices.ContainsFunc(l.values, outside):
		return fmt.Sprintf("law %s has %d values; it takes %d, each 0 to 2^40, of cc below %d", l.name, len(l.values),
			wanted, controls)
	case kinds["class"] == "" && !slices.Contains(withoutModel, l.name):
		return fmt.Sprintf("law %s needs a model of role class", l.name)
	}
	for _, known := range roleKinds {
		if given := kinds[known.role]; given != "" && given != known.kind {
			return fmt.Sprintf("role %s is of kind %s, not %s", known.role, known.kind, given)
		}
	}
	return ""
}
