import { isDeepStrictEqual } from 'node:util'
import { isMap } from '../is-map.ts'
import { composeYaml } from '../yaml/compose-yaml.ts'
import { readJson } from '../yaml/read-json.ts'
import { readNodes } from '../yaml/read-nodes.ts'
import { ruleSpanOf } from './edit-rule.ts'

/** The change of one rule between two texts of a document. */
export interface RuleChange {
  readonly id: string
  readonly change: 'added' | 'changed' | 'removed'
}

/** The differences of two texts of a document. */
export interface DocumentChange {
  readonly rules: readonly RuleChange[]
  /** True if options beside the rules differ. */
  readonly others: boolean
}

const LONGEST_COMMENT = 300
const MOST_NOTED = 50

/** Characters that end a line for some reader, change the direction of text, or cannot stand in YAML. */
const UNWANTED = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]|\p{Surrogate}/gu

/** Returns a comment on one line, of bounded length: line ends and control characters become spaces. */
export function commentLine(text: string): string {
  const line = text.replace(UNWANTED, ' ').replace(/\s+/g, ' ').trim()
  if (line.length <= LONGEST_COMMENT) return line
  return `${line.slice(0, LONGEST_COMMENT - 1).replace(/\p{Surrogate}/gu, '')}…`
}

/** Lists which rules were added, changed and removed between two texts of a document. */
export function documentChange(before: string, after: string): DocumentChange {
  const [old, fresh] = [documentValue(before), documentValue(after)]
  const [known, proposed] = [byId(old), byId(fresh)]
  const rules: RuleChange[] = []
  for (const [id, rule] of proposed) {
    const earlier = known.get(id)
    if (earlier === undefined) rules.push({ id, change: 'added' })
    else if (!isDeepStrictEqual(earlier, rule)) rules.push({ id, change: 'changed' })
  }
  for (const id of known.keys()) if (!proposed.has(id)) rules.push({ id, change: 'removed' })
  return { rules, others: !isDeepStrictEqual(withoutRules(old), withoutRules(fresh)) }
}

/**
 * Returns the later text with a comment above each rule that was added or changed; undefined if it has none, if they are too many,
 * or if a comment cannot stand there, as in JSON. The comment never changes what the document means.
 */
export function noteChanges(before: string, after: string, comment: string): string | undefined {
  const line = commentLine(comment)
  const ids = documentChange(before, after).rules.filter(({ change }) => change !== 'removed')
  if (line === '' || ids.length === 0 || ids.length > MOST_NOTED) return undefined
  if (readJson(after.replace(/^\uFEFF/, '')) !== undefined) return undefined
  const places: number[] = []
  for (const { id } of ids) {
    const span = ruleSpanOf(after, id)
    if (span === undefined) return undefined
    places.push(span.lineStart)
  }
  const lineEnd = after.includes('\r\n') ? '\r\n' : '\n'
  let noted = after
  for (const at of places.sort((one, other) => other - one)) {
    const margin = /^[ ]*/.exec(noted.slice(at))![0]
    noted = `${noted.slice(0, at)}${margin}# ${line}${lineEnd}${noted.slice(at)}`
  }
  return isDeepStrictEqual(documentValue(noted), documentValue(after)) ? noted : undefined
}

/** Returns the plain value of a document; undefined if it cannot be read. */
export function documentValue(text: string): unknown {
  const body = text.replace(/^\uFEFF/, '')
  const json = readJson(body)
  if (json !== undefined) return json
  const { document, fault } = composeYaml(body)
  return fault || !document ? undefined : readNodes(document).value
}

/** Returns the rules of a document's value that are maps. */
export function rulesOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return isMap(value) && Array.isArray(value.rules) ? value.rules.filter(isMap) : []
}

function byId(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(rulesOf(value).map(rule => [String(rule.id), rule]))
}

function withoutRules(value: unknown): unknown {
  return isMap(value) ? { ...value, rules: undefined } : value
}
