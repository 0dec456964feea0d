import type { Call } from '../../call.ts'
import { normalizeTarget } from '../../http/path.ts'
import { lettersOf, lettersOfBytes } from '../../http/path-letters.ts'
import { hasReadings, readingsOf } from '../../http/path-readings.ts'
import { getOrAdd } from '../get-or-add.ts'
import type { Match } from '../rule.ts'
import { conditionsOf } from './condition.ts'
import { type Budget, type Candidate, RuleGroup } from './group.ts'
import { canonicalPattern, PathTree } from './path.ts'
import { Search } from './search.ts'

export interface Matchable {
  readonly match: Match
}

/** Puts the rules that match a call into `found`, in the order of the document, and returns how many there are. */
export type Matcher<R> = (call: Call, found: R[]) => number

const MAX_INDEXED_VALUES = 300_000

/** Compiles rules so that the time of a search depends on the rules that match, not on all rules. */
export function compileMatch<R extends Matchable>(rules: readonly R[]): Matcher<R> {
  const budget: Budget = { values: MAX_INDEXED_VALUES }
  const anyPath: Candidate[] = []
  const byPattern = new Map<string, Candidate[]>()
  rules.forEach(({ match }, position) => {
    if (match.none) return
    const candidate = { position, conditions: conditionsOf(match) }
    const patterns = new Set(match.path?.flatMap(spellings))
    if (patterns.size === 0) anyPath.push(candidate)
    for (const pattern of patterns) getOrAdd(byPattern, pattern, () => []).push(candidate)
  })
  const tree = treeOf(byPattern, budget)
  let anyCaseTree: PathTree | undefined
  // if every rule matches every call there is nothing to search
  if (anyPath.length === rules.length && anyPath.every(({ conditions }) => conditions.length === 0)) {
    return (_call, found) => copyInto(found, rules)
  }
  const everywhere = new RuleGroup(anyPath, budget)
  const search = new Search(rules.length)
  return (call, found) => {
    search.begin(call)
    everywhere.collect(search)
    if (byPattern.size > 0) {
      const { path, otherPath, earlierPaths, caseInsensitive = false } = call
      if (caseInsensitive) anyCaseTree ??= treeOf(inLowerCase(byPattern), { values: MAX_INDEXED_VALUES })
      const spell = caseInsensitive ? lettersInLowerCase : lettersOf
      const paths = caseInsensitive ? anyCaseTree! : tree
      collect(paths, path, spell, search)
      if (otherPath !== undefined) collect(paths, otherPath, spell, search)
      if (earlierPaths !== undefined) for (const earlier of earlierPaths) collect(paths, earlier, spell, search)
    }
    return search.end(rules, found)
  }
}

/** A path as written, as most routers read it, and every other way in which a server may read it. */
function collect(paths: PathTree, path: string, spell: (path: string) => string, search: Search): void {
  paths.collect(spell(path), search)
  if (hasReadings(path)) for (const reading of readingsOf(path)) paths.collect(spell(reading), search)
  const letters = lettersOfBytes(path)
  if (letters !== undefined) collect(paths, letters, spell, search)
}

/** Letters first: to routers that ignore case, `%C3%89` is `%C3%A9`. */
function lettersInLowerCase(path: string): string {
  return lettersOf(path).toLowerCase()
}

function copyInto<R>(found: R[], rules: readonly R[]): number {
  for (let i = 0; i < rules.length; i++) found[i] = rules[i]!
  return rules.length
}

function treeOf(byPattern: ReadonlyMap<string, Candidate[]>, budget: Budget): PathTree {
  const tree = new PathTree()
  for (const [pattern, candidates] of byPattern) tree.add(pattern, new RuleGroup(candidates, budget))
  return tree
}

function inLowerCase(byPattern: ReadonlyMap<string, Candidate[]>): Map<string, Candidate[]> {
  const lower = new Map<string, Candidate[]>()
  for (const [pattern, candidates] of byPattern) getOrAdd(lower, pattern.toLowerCase(), () => []).push(...candidates)
  return lower
}

/** A pattern as written, and as its dots and backslashes lead in a URL. */
function spellings(pattern: string): string[] {
  const written = canonicalPattern(pattern)
  if (pattern.includes('?') || pattern.includes('#')) return [lettersOf(written)]
  const sent = normalizeTarget(`/${encodeLetters(written)}`)
  const forms = sent === undefined ? [written] : [written, canonicalPattern(sent.path)]
  return [...new Set(forms.map(lettersOf))]
}

function encodeLetters(text: string): string {
  let encoded = ''
  for (const letter of text) {
    const code = letter.codePointAt(0)!
    const isLoneSurrogate = code >= 0xd800 && code <= 0xdfff
    encoded += code > 0x20 && (code < 0x7f || isLoneSurrogate) ? letter : encodeURIComponent(letter)
  }
  return encoded
}
