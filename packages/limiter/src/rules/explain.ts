import type { Fault, Issue } from '../shapes/issue.ts'
import type { Schema } from '../shapes/schema.ts'
import { hintForOption, hintForValue } from './schema/hints.ts'
import { joinNames, show } from './show.ts'
import { suggest } from './suggest.ts'

/** A problem at a path of a document: `what` follows the path in the message. */
export interface Problem {
  readonly path: readonly PropertyKey[]
  /** Points at the option's name rather than at its value. */
  readonly atName: boolean
  readonly what: string
}

/** Returns a value parsed by a schema, or all its problems as text for people. */
export function explain<T>(
  schema: Schema<T>,
  value: unknown,
  unknownOption: (word: string, known: readonly string[]) => string = explainOption,
): { readonly data: T; readonly problems: readonly [] } | { readonly data?: undefined; readonly problems: Problem[] } {
  const { data, issues } = schema.examine(value)
  if (issues.length === 0) return { data, problems: [] }
  return { problems: issues.flatMap(flatten).flatMap(issue => problemsOf(issue, unknownOption)) }
}

/** Chooses the branch of a union whose kind of value was given. */
function flatten(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const meant = issue.errors.find(branch => !branch.some(isWrongKind))
  return meant ? meant.flatMap(inner => flatten({ ...inner, path: [...issue.path, ...inner.path] })) : [issue]
}

function problemsOf(issue: Issue, unknownOption: (word: string, known: readonly string[]) => string): Problem[] {
  const { path } = issue
  if (issue.code !== 'unrecognized_keys') {
    return [{ path, atName: issue.code === 'invalid_key', what: issue.message || describeIssue(issue) }]
  }
  const explainOne = path.length === 0 ? unknownOption : explainOption
  return issue.keys.map(word => ({ path: [...path, word], atName: true, what: explainOne(word, issue.known) }))
}

/** Returns the message for an unknown option. */
export function explainOption(word: string, known: readonly string[]): string {
  const hint = known.includes(word) ? undefined : hintForOption(word, known)
  if (hint !== undefined) return `is not a known option: write ${hint}`
  const meant = suggest(word, known)
  return `is not a known option: ${meant ? `did you mean ${meant}?` : `write ${joinNames(known)}`}`
}

function describeIssue(issue: Issue): string {
  const hint = isKindOfValue(issue) ? hintForValue(issue.path.at(-1), issue.input) : undefined
  return hint === undefined ? describeFault(issue) : `${describeFault(issue)}: ${hint}`
}

function isKindOfValue({ code, input }: Issue): boolean {
  if (input === undefined || input === null) return false
  return code === 'invalid_type' || code === 'invalid_union' || code === 'invalid_value'
}

function describeFault(issue: Fault & { readonly input: unknown }): string {
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

/** Returns true if a value is of another kind than expected, so that this branch of a union is not the one that was meant. */
function isWrongKind(issue: Issue): boolean {
  if (issue.path.length > 0) return false
  if (issue.code === 'invalid_value') return issue.values.every(value => typeof value !== typeof issue.input)
  return (
    issue.code === 'invalid_type' || (issue.code === 'invalid_union' && !issue.errors.some(b => !b.some(isWrongKind)))
  )
}

/** Returns what is wrong with a value of another kind than expected. */
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
