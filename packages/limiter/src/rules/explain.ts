import { describeFault, type Issue, isWrongKind } from '../shapes/issue.ts'
import type { Schema } from '../shapes/schema.ts'
import { hintForOption, hintForValue } from './schema/hints.ts'
import { joinNames } from './show.ts'
import { suggest } from './suggest.ts'

/** A problem at a path of a document: `what` follows the path in the message. */
export interface Problem {
  readonly path: readonly PropertyKey[]
  /** Points at the option's name rather than at its value. */
  readonly atName: boolean
  readonly what: string
}

/** A value parsed by a schema, or all its problems as text for people. */
export function explain<T>(
  schema: Schema<T>,
  value: unknown,
  unknownOption: (word: string, known: readonly string[]) => string = explainOption,
): { readonly data: T; readonly problems: readonly [] } | { readonly data?: undefined; readonly problems: Problem[] } {
  const { data, issues } = schema.examine(value)
  if (issues.length === 0) return { data, problems: [] }
  return { problems: issues.flatMap(flatten).flatMap(issue => problemsOf(issue, unknownOption)) }
}

/** Of the branches of a union, the one whose kind of value was given. */
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

/** The message for an unknown option. */
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
