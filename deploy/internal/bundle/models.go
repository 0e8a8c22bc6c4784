package bundle

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	maxModels = 4  // settings.max_bundle_models
	maxRole   = 16 // characters of a model's role
)

// kinds of models, each with the number of its field in a Model.
var modelKinds = map[string]protowire.Number{"tree": 3, "sum": 4}

// roleKinds are the roles that laws know, with their kinds.
var roleKinds = []struct{ role, kind string }{{"class", "tree"}, {"window", "sum"}}

// model is what a Model has beside its tables.
type model struct {
	role, kind string
	tables     []protowire.Number // the fields that hold one
}

func readModel(message []byte) (m model, err error) {
	err = fields(message, 6, []protowire.Number{5, 6}, func(number protowire.Number, f field) bool {
		isBytes := f.kind == protowire.BytesType
		switch number {
		case 1:
			m.role = string(f.bytes)
			return isBytes && isText(f.bytes)
		case 2:
			m.kind = string(f.bytes)
			return isBytes && isText(f.bytes)
		case 3, 4:
			m.tables = append(m.tables, number)
			return isBytes
		case 5, 6: // golden vectors: lists of numbers, packed or not
			return isBytes || f.kind == protowire.VarintType
		}
		return true
	})
	return m, err
}

// kindsOf is the kind of each role, or what makes the models no models of format 2.
func kindsOf(models []model) (kinds map[string]string, wrong string) {
	if len(models) > maxModels {
		return nil, fmt.Sprintf("%d models; a bundle has at most %d", len(models), maxModels)
	}
	kinds = map[string]string{}
	for _, m := range models {
		table, known := modelKinds[m.kind]
		switch {
		case m.role == "" || len(m.role) > maxRole || kinds[m.role] != "":
			return nil, fmt.Sprintf("role `%s`: each comes once and has 1 to %d characters", m.role, maxRole)
		case !known:
			return nil, fmt.Sprintf("role %s: kind `%s`, this service knows tree and sum", m.role, m.kind)
		case len(m.tables) != 1 || m.tables[0] != table:
			return nil, fmt.Sprintf("role %s: a model of kind %s has the field of this name, and no other", m.role,
				m.kind)
		}
		kinds[m.role] = m.kind
	}
	return kinds, ""
}
