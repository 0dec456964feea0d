import { isMap } from './is-map.ts'
import type { Mistake } from './mistake.ts'
import { createRuleReader } from './read-rule.ts'
import type { Rule, RuleDocument } from './rule.ts'
import type { Vocabulary } from './schema/vocabulary.ts'
import { cutText, escapeText, showPath } from './show.ts'
import { optionsOf, readDocument } from './yaml/read-document.ts'

export type { DocumentOptions, RuleOptions } from './schema/options.ts'
export type { Vocabulary } from './schema/vocabulary.ts'

/** A valid document, or its mistakes in the order of its lines. */
export type Parsed =
  | { readonly document: RuleDocument; readonly mistakes: readonly [] }
  | { readonly document?: undefined; readonly mistakes: readonly Mistake[] }

/** No more mistakes than this are reported of one document. */
export const MAX_MISTAKES = 50

/** Reads the options of a rule file given in code; mistakes name the path, such as `rules[2].limit`. */
export function parseOptions(value: unknown, vocabulary: Vocabulary): Parsed {
  const given = isMap(value) ? { ...value, rules: value.rules ?? [] } : value
  const { document, problems } = readDocument(given, vocabulary, 0)
  if (document) return { document, mistakes: [] }
  const mistakes = problems.slice(0, MAX_MISTAKES).map(({ path, what }) => ({
    file: '',
    line: 0,
    column: 0,
    ...describe(what, showPath(path) || 'the value'),
    ...ruleAt(path, given),
  }))
  return { mistakes }
}

/** Reads one rule given in code, beside those of a document. */
export function parseRule(
  given: unknown,
  vocabulary: Vocabulary,
  beside: RuleDocument,
): { readonly rule?: Rule; readonly mistakes: readonly Mistake[] } {
  const read = createRuleReader({
    vocabulary: { ...vocabulary, givenOptions: optionsOf(beside) },
    identified: Object.keys(beside.identify),
    hasStore: beside.store !== undefined,
  })
  const { rule, problems } = read(given)
  if (rule && problems.length === 0) return { rule, mistakes: [] }
  const mistakes = problems.slice(0, MAX_MISTAKES).map(({ path, what }) => {
    return { file: '', line: 0, column: 0, ...describe(what, showPath(path) || 'the rule'), ...nameOf(given) }
  })
  return { mistakes }
}

/** Returns a message about a subject, made safe to print. */
export function describe(what: string, subject: string): { message: string } {
  return { message: cutText(escapeText(`${subject} ${what}`), 500) }
}

/** Returns the name of the rule that a path of a document leads into. */
export function ruleAt([word, index]: readonly PropertyKey[], value: unknown): { rule?: string } {
  const rules = word === 'rules' && isMap(value) && Array.isArray(value.rules) ? value.rules : []
  return nameOf(rules[Number(index)])
}

function nameOf(rule: unknown): { rule?: string } {
  return isMap(rule) && typeof rule.id === 'string' ? { rule: escapeText(cutText(rule.id)) } : {}
}
