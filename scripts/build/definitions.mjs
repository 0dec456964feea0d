/** A schema that is shorter than this is written where it is used. */
const LEAST = 60

/** Returns a JSON Schema that has what it would repeat once, under `$defs`: the one of the rule file takes a third of the space then. */
export function withDefinitions(schema) {
  const times = new Map()
  visit(schema, node => times.set(textOf(node), (times.get(textOf(node)) ?? 0) + 1))
  const names = new Map()
  const definitions = {}
  const shorten = (node, isRoot = false) => {
    if (!isRoot && isSchema(node) && times.get(textOf(node)) > 1) return { $ref: `#/$defs/${nameOf(node)}` }
    return mapValues(node, value => shorten(value))
  }
  const nameOf = node => {
    const text = textOf(node)
    if (!names.has(text)) {
      const name = `d${names.size + 1}`
      names.set(text, name)
      definitions[name] = mapValues(node, value => shorten(value))
    }
    return names.get(text)
  }
  return { ...shorten(schema, true), $defs: definitions }
}

/** Returns the schema as it was before `withDefinitions`. */
export function withoutDefinitions({ $defs, ...schema }) {
  const expand = node => {
    const [, name] = /^#\/\$defs\/(.*)$/.exec(node?.$ref ?? '') ?? []
    return name === undefined ? mapValues(node, expand) : expand($defs[name])
  }
  return expand(schema)
}

function visit(node, found) {
  if (isSchema(node)) found(node)
  if (typeof node === 'object' && node !== null) for (const value of Object.values(node)) visit(value, found)
}

/** Only objects with one of these words stand where a schema may be a reference. */
function isSchema(node) {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return false
  return (
    ['type', 'anyOf', 'allOf'].some(word => ['string', 'object'].includes(typeof node[word])) &&
    textOf(node).length > LEAST
  )
}

function mapValues(node, change) {
  if (Array.isArray(node)) return node.map(change)
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, change(value)]))
}

function textOf(node) {
  return JSON.stringify(node)
}
