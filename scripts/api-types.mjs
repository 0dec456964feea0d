/**
 * TypeScript for the answers of an OpenAPI document: each schema with a title is a type of that name, and `Answers` has the answer of
 * each operation by its id.
 */
export function apiTypes({ paths, components }) {
  const named = new Map()
  const answers = Object.values(paths).flatMap(path => {
    return Object.values(path).flatMap(({ operationId, summary, responses }) => {
      const schema = responses[200].content['application/json']?.schema
      return schema ? [{ name: operationId, isRequired: true, type: typeOf(schema, named), description: summary }] : []
    })
  })
  for (const schema of Object.values(components.schemas)) if (schema.title) typeOf(schema, named)
  const types = [...named].sort(([one], [two]) => (one < two ? -1 : 1))
  const note = '// Generated from the schemas of the admin API by scripts/write-api-types.mjs: do not edit.'
  const declared = types.map(([name, type]) => {
    return type.startsWith('{') ? `export interface ${name} ${type}` : `export type ${name} = ${type}`
  })
  return `${[note, ...declared, `/** The answer of each operation. */\nexport interface Answers ${objectOf(answers)}`].join('\n\n')}\n`
}

/** Returns the type of a schema, and puts it among the named ones if it has a title. */
function typeOf(schema, named) {
  const type = bodyOf(schema, named)
  const { title } = schema
  if (title === undefined) return type
  if ((named.get(title) ?? type) !== type) throw new Error(`two schemas with different types have the title ${title}`)
  named.set(title, type)
  return title
}

function bodyOf(schema, named) {
  const { type, anyOf, properties, items, additionalProperties: rest } = schema
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(type)) return type.map(one => bodyOf({ ...schema, type: one }, named)).join(' | ')
  if (anyOf) return anyOf.map(one => typeOf(one, named)).join(' | ')
  if (type === 'array') return `readonly ${inBrackets(typeOf(items, named))}[]`
  if (type === 'object' && properties) {
    const members = Object.entries(properties).map(([name, one]) => {
      const isRequired = schema.required?.includes(name) === true
      return { name, isRequired, type: typeOf(one, named), description: one.description }
    })
    return objectOf(members)
  }
  if (type === 'object')
    return `Readonly<Record<string, ${typeof rest === 'object' ? typeOf(rest, named) : 'unknown'}>>`
  if (type === 'integer') return 'number'
  if (['string', 'number', 'boolean', 'null'].includes(type)) return type
  if (type === undefined) return 'unknown'
  throw new Error(`no type is known for ${JSON.stringify(schema)}`)
}

function objectOf(members) {
  const lines = members.flatMap(({ name, isRequired, type, description }) => [
    ...(description ? [`/** ${description.replaceAll('*/', '* /')} */`] : []),
    isRequired ? `readonly ${name}: ${type}` : `readonly ${name}?: ${type} | undefined`,
  ])
  return `{\n${lines.join('\n').replace(/^/gm, '  ')}\n}`
}

function inBrackets(type) {
  return type.includes(' | ') ? `(${type})` : type
}
