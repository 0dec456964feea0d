import type { Place } from './yaml-place.ts'

/** The part of JSON Schema that the schema of the rule file uses. */
export interface Schema {
  readonly description?: string
  readonly type?: string
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
}

export interface Suggestion {
  readonly label: string
  readonly description: string | undefined
  readonly kind: Place['kind']
}

/** Returns the options that the schema allows at a place. */
export function suggest(schema: Schema, { path, kind }: Place): Suggestion[] {
  let found = alternatives(schema)
  for (const step of path) found = found.flatMap(one => below(one, step)).flatMap(alternatives)
  const suggestions = new Map<string, Suggestion>()
  for (const one of found) {
    for (const suggestion of kind === 'key' ? keysOf(one) : valuesOf(one)) {
      if (!suggestions.has(suggestion.label)) suggestions.set(suggestion.label, suggestion)
    }
  }
  return [...suggestions.values()]
}

function alternatives(schema: Schema): Schema[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]
  if (inner.length === 0) return [schema]
  const { description, properties } = schema
  // alternatives may only narrow what the words themselves say
  const own = properties === undefined ? [] : [schema]
  return [...own, ...inner.flatMap(alternatives)].map(one =>
    description === undefined ? one : { description, ...one },
  )
}

function below(schema: Schema, step: string): Schema[] {
  if (step === '[]') return schema.items === undefined ? [] : [schema.items]
  const named = schema.properties?.[step]
  if (named !== undefined) return [named]
  return typeof schema.additionalProperties === 'object' ? [schema.additionalProperties] : []
}

function keysOf(schema: Schema): Suggestion[] {
  return Object.entries(schema.properties ?? {}).map(([label, { description }]) => ({
    label,
    description,
    kind: 'key',
  }))
}

function valuesOf({ const: only, enum: some, type, description }: Schema): Suggestion[] {
  const values = only !== undefined ? [only] : (some ?? (type === 'boolean' ? [true, false] : []))
  return values.map(value => ({ label: String(value), description, kind: 'value' }))
}
