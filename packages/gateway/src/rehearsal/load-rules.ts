import { DianaError } from 'diana-limiter'
import { assertRules, type Extensions, importPlugins, mergeExtensions, pluginsNamedIn } from 'diana-limiter/gateway'
import { formatMistake, parseText, readValues, type Section } from 'diana-limiter/schema'
import type { Place } from './cases/case-file.ts'
import { isMap } from './cases/reader.ts'
import type { RuleSet } from './run/rule-set.ts'

/** Reads the rules of a file. Throws a DianaError with all mistakes of the file. */
export async function readRuleSet(
  text: string,
  file: string,
  { extensions, sections }: { readonly extensions: Extensions; readonly sections: readonly Section[] },
): Promise<RuleSet> {
  const plugins = await importPlugins(pluginsNamedIn(text), file)
  const vocabulary = { ...mergeExtensions(extensions, plugins), sections }
  const { document, mistakes } = parseText(text, file, vocabulary)
  if (document === undefined) throw new DianaError('BAD_RULES', mistakes.map(formatMistake).join('\n'))
  assertRules(document, vocabulary)
  let places: ReadonlyMap<string, Place> | undefined
  const placeOf = (rule: string): Place | undefined => {
    places ??= placesIn(text, file)
    return places.get(rule)
  }
  return { file, document, extensions: vocabulary, placeOf }
}

/** Returns the place at which each rule begins. */
function placesIn(text: string, file: string): Map<string, Place> {
  const values = readValues(text, file)
  const rules = isMap(values.value) && Array.isArray(values.value.rules) ? values.value.rules : []
  const places = new Map<string, Place>()
  for (const [index, rule] of rules.entries()) {
    if (isMap(rule)) places.set(String(rule.id), { file, ...values.placeOf(['rules', index, 'id']) })
  }
  return places
}
