import type { Call } from '../../call.ts'
import { normalizeTarget } from '../../http/path.ts'
import { hasReadings, isTooAmbiguous, lettersOf, lettersOfBytes, readingsOf } from '../../http/path-readings.ts'
import { getOrAdd } from '../get-or-add.ts'
import type { Match } from '../rule.ts'
import { conditionsOf } from './condition.ts'
import { type Budget, type Candidate, RuleGroup } from './group.ts'
import { canonicalPattern, PathTree } from './path.ts'
import { type Reading, Search } from './search.ts'

export interface Matchable {
  readonly match: Match
}

/** The result of a search for a path that can be read in too many ways. */
export const TOO_AMBIGUOUS: number = -1

/**
 * Puts the rules that match a call into `found`, in the order of the document, and returns how many there are, or TOO_AMBIGUOUS. Rules
 * that hold by any reading of the call match, or by the given one only.
 */
export type Matcher<R> = (call: Call, found: R[], reading?: Reading) => number

const MAX_INDEXED_VALUES = 300_000

/** Compiles rules so that the time of a search depends on the rules that match, not on all rules. */
export function compileMatch<R extends Matchable>(rules: readonly R[], about?: 'messages'): Matcher<R> {
  const budget: Budget = { values: MAX_INDEXED_VALUES }
  const anyPath: Candidate[] = []
  const byPattern = new Map<string, Candidate[]>()
  rules.forEach(({ match }, position) => {
    if (match.none || match.websocket !== about) return
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
  return (call, found, reading) => {
    search.begin(call, reading)
    everywhere.collect(search)
    if (byPattern.size > 0) {
      const { path, otherPath, earlierPaths, caseInsensitive = false } = call
      if (caseInsensitive) anyCaseTree ??= treeOf(foldPatterns(byPattern), { values: MAX_INDEXED_VALUES })
      const fold = caseInsensitive ? inLowerCase : asItIs
      const paths = caseInsensitive ? anyCaseTree! : tree
      if (reading !== undefined) {
        paths.collect(fold(reading.path), search)
        return search.end(rules, found)
      }
      let isReadable = collect(paths, path, fold, search)
      if (otherPath !== undefined) isReadable &&= collect(paths, otherPath, fold, search)
      if (earlierPaths !== undefined) {
        for (const earlier of earlierPaths) isReadable &&= collect(paths, earlier, fold, search)
      }
      if (!isReadable) return TOO_AMBIGUOUS
    }
    return search.end(rules, found)
  }
}

/**
 * Collects rules by a path as written, as most routers read it, and every other way in which a server may read it; false if those
 * are too many.
 */
function collect(paths: PathTree, path: string, fold: (path: string) => string, search: Search): boolean {
  // letters first: to routers that ignore case, `%C3%89` is `%C3%A9`
  const letters = lettersOf(path)
  paths.collect(fold(letters), search)
  if (hasReadings(letters)) {
    if (isTooAmbiguous(letters)) return false
    for (const reading of readingsOf(letters)) if (reading !== letters) paths.collect(fold(reading), search)
  }
  const sent = lettersOfBytes(path)
  return sent === undefined || collect(paths, sent, fold, search)
}

function inLowerCase(path: string): string {
  return path.toLowerCase()
}

function asItIs(path: string): string {
  return path
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

function foldPatterns(byPattern: ReadonlyMap<string, Candidate[]>): Map<string, Candidate[]> {
  const lower = new Map<string, Candidate[]>()
  for (const [pattern, candidates] of byPattern) getOrAdd(lower, pattern.toLowerCase(), () => []).push(...candidates)
  return lower
}

/** Returns a pattern as written, and as its dots and backslashes lead in a URL. */
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
