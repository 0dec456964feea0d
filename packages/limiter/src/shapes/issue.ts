import { joinNames, show } from '../rules/show.ts'
import { suggest } from '../rules/suggest.ts'

/** What is wrong with a value, by kind. */
export type Fault =
  | { readonly code: 'invalid_type'; readonly expected: string }
  | { readonly code: 'invalid_value'; readonly values: readonly Primitive[] }
  | { readonly code: 'too_small'; readonly origin: string; readonly minimum: number; readonly isExcluded?: boolean }
  | { readonly code: 'too_big'; readonly origin: string; readonly maximum: number }
  | { readonly code: 'invalid_format'; readonly pattern: string }
  | { readonly code: 'unrecognized_keys'; readonly keys: readonly string[]; readonly known: readonly string[] }
  | { readonly code: 'invalid_union'; readonly errors: readonly (readonly Issue[])[] }
  | { readonly code: 'invalid_key'; readonly issues: readonly Issue[] }
  | { readonly code: 'custom' }

export type Primitive = string | number | boolean | null

/** A fault, with its place in the value and a message. */
export type Issue = Fault & {
  readonly path: readonly PropertyKey[]
  readonly input: unknown
  readonly message: string
}

/** Makes the message of a fault; undefined leaves it to the next one. */
export type ErrorMap = (issue: Fault & { readonly input: unknown }) => string | undefined

/** A fault found while a value is read; its message is made when all are known. */
export type Finding = Fault & {
  path: PropertyKey[]
  readonly input: unknown
  readonly message?: string | undefined
  error?: ErrorMap | undefined
  /** Whether the value can be checked further, so that its other faults are reported as well. */
  readonly goesOn: boolean
}

/** Each finding with its message; it is empty if its schema has no words for it. */
export function toIssues(findings: readonly Finding[]): Issue[] {
  return findings.map(({ error, goesOn: _, ...finding }) => {
    return { ...finding, message: finding.message ?? error?.(finding) ?? '' }
  })
}

/** What is wrong and what to write, if the schema has no words of its own. */
export function describeFault(issue: Fault & { readonly input: unknown }): string {
  const found = show(issue.input)
  switch (issue.code) {
    case 'invalid_type':
      return wrongKind(issue.input, kinds[issue.expected] ?? issue.expected)
    case 'invalid_union': {
      const said = issue.errors.flat().find(inner => inner.message !== '')
      return said?.message ?? wrongKind(issue.input, joinNames([...new Set(kindsOf(issue))]))
    }
    case 'invalid_value': {
      const values = issue.values.map(String)
      const meant = typeof issue.input === 'string' ? suggest(issue.input, values) : undefined
      const remedy = `must be ${joinNames(values)}, not ${found}`
      return meant ? `${remedy}: did you mean ${meant}?` : remedy
    }
    case 'too_small':
      if (Array.isArray(issue.input) && issue.input.length === 0) return 'is an empty list: put something in it'
      return `must be ${issue.isExcluded ? 'more than' : 'at least'} ${amount(issue.origin, issue.minimum)}, not ${sizeOf(issue.input)}`
    case 'too_big':
      return `must be at most ${amount(issue.origin, issue.maximum)}, not ${sizeOf(issue.input)}`
    case 'invalid_key':
      return issue.issues.map(inner => inner.message).find(Boolean) ?? 'is not a name that can stand here'
    case 'unrecognized_keys':
      return `has no field ${issue.keys.map(key => show(key)).join(', ')}: write ${joinNames([...issue.known])}`
    default:
      return `cannot be ${found}: see the values that this field takes`
  }
}

const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of options',
  record: 'a map of options',
}

function kindsOf(issue: Fault): string[] {
  if (issue.code === 'invalid_union') return issue.errors.flat().filter(isWrongKind).flatMap(kindsOf)
  return issue.code === 'invalid_type' ? [kinds[issue.expected] ?? issue.expected] : []
}

/** Whether a value is of another kind than expected, so that this branch of a union is not the one that was meant. */
export function isWrongKind(issue: Issue): boolean {
  if (issue.path.length > 0) return false
  if (issue.code === 'invalid_value') return issue.values.every(value => typeof value !== typeof issue.input)
  return (
    issue.code === 'invalid_type' || (issue.code === 'invalid_union' && !issue.errors.some(b => !b.some(isWrongKind)))
  )
}

/** What is wrong with a value of another kind than expected. */
export function wrongKind(input: unknown, expected: string): string {
  if (input === undefined) return `is missing: give ${expected}`
  if (input === null) return `has no value: give ${expected}, or leave the word out`
  const quotable = expected.startsWith(kinds.string!) && (typeof input === 'number' || typeof input === 'boolean')
  return `must be ${expected}, not ${show(input)}${quotable ? `: write "${show(input)}" in quotes` : ''}`
}

function amount(origin: string, bound: number): string {
  if (origin === 'string') return `${bound} characters long`
  return origin === 'array' ? `a list of ${bound}` : String(bound)
}

function sizeOf(input: unknown): string {
  if (Array.isArray(input)) return String(input.length)
  return typeof input === 'string' && input.length > 60 ? `${input.length}` : show(input)
}
