import { isDeepStrictEqual } from 'node:util'
import { isMap, type Pair, type YAMLMap } from 'yaml'
import { composeYaml } from '../yaml/compose-yaml.ts'
import { readJson } from '../yaml/read-json.ts'
import { editRule, ruleSpanOf, ruleTextOf } from './edit-rule.ts'
import { flowYaml, ruleYaml } from './flow-yaml.ts'
import { documentValue, rulesOf } from './rule-changes.ts'

/** One option of a rule: `['match', 'path']` is an option inside another, and the value null removes it. */
export interface OptionChange {
  readonly path: readonly string[]
  readonly value: unknown
}

/** A document in which one rule was changed or added. */
export interface EditedRule {
  readonly text: string
  /** The rule as it is written there, and its options. */
  readonly rule: string
  readonly options: Readonly<Record<string, unknown>>
}

interface Style {
  readonly json: boolean
  readonly lineEnd: string
}

/**
 * Returns the document with some options of a rule changed, or with a new rule if `id` is undefined. Only the text of these options
 * changes. Undefined if there is no such rule, or if the change cannot be made without changing something else.
 */
export function editOptions(
  text: string,
  id: string | undefined,
  changes: readonly OptionChange[],
): EditedRule | undefined {
  return id === undefined ? addRule(text, changes) : changeRule(text, id, changes)
}

function addRule(text: string, changes: readonly OptionChange[]): EditedRule | undefined {
  const options: Record<string, unknown> = {}
  for (const { path, value } of changes) setIn(options, path, value)
  const rule = ruleYaml(options)
  // no rule has an empty id: it is added, also beside one that has the same
  const edited = editRule(text, '', rule)
  if (edited === undefined) return undefined
  const before = text.trim() === '' ? [] : rulesOf(documentValue(text))
  if (!isDeepStrictEqual(rulesOf(documentValue(edited)), [...before, options])) return undefined
  return { text: edited, rule, options }
}

function changeRule(text: string, id: string, changes: readonly OptionChange[]): EditedRule | undefined {
  const before = documentValue(text)
  const place = rulesOf(before).findIndex(rule => rule.id === id)
  const span = ruleSpanOf(text, id)
  if (place < 0 || span === undefined) return undefined
  const options = structuredClone(rulesOf(before)[place]!) as Record<string, unknown>
  const json = readJson(text.replace(/^\uFEFF/, '')) !== undefined
  const style: Style = { json, lineEnd: text.includes('\r\n') ? '\r\n' : '\n' }
  // a rule by itself is read many times faster than its document; its lines keep their indent
  const margin = ' '.repeat(span.column)
  let source = margin + text.slice(span.start, span.end)
  for (const { path, value } of changes) {
    setIn(options, path, value)
    const map = composeYaml(source).document?.contents
    if (!isMap(map)) return undefined
    source = setOption(source, map as YAMLMap, path, value, style)
  }
  const edited = text.slice(0, span.start) + source.slice(margin.length) + text.slice(span.end)
  const expected = rulesOf(before).map((rule, at) => (at === place ? options : rule))
  if (!isDeepStrictEqual(documentValue(edited), { ...(before as object), rules: expected })) return undefined
  return { text: edited, rule: ruleTextOf(edited, id) ?? source, options }
}

function setOption(source: string, map: YAMLMap, path: readonly string[], value: unknown, style: Style): string {
  const [name = '', ...inner] = path
  const at = map.items.findIndex(pair => String(pair.key) === name)
  const pair = map.items[at]
  if (inner.length > 0 && isMap(pair?.value)) return setOption(source, pair.value as YAMLMap, inner, value, style)
  if (value === null) return pair === undefined ? source : removePair(source, map, at)
  const written = flowYaml(
    inner.reduceRight((one, word) => ({ [word]: one }), value),
    style,
  )
  if (pair !== undefined) return replaceValue(source, pair, written)
  return addPair(source, map, `${flowYaml(name, style)}: ${written}`, style)
}

function replaceValue(source: string, pair: Pair, written: string): string {
  const [, keyEnd] = rangeOf(pair.key)
  const [start, end] = rangeOf(pair.value, keyEnd)
  const between = source.slice(keyEnd, start)
  const old = source.slice(start, end)
  const isInline = start > keyEnd && !between.includes('\n') && between.trimEnd() !== between
  // a value on lines of its own begins behind the colon from now on
  if (!isInline || /^[|>]/.test(old) || isBlock(pair.value)) {
    return `${source.slice(0, keyEnd)}: ${written}${source.slice(start + old.trimEnd().length)}`
  }
  return source.slice(0, start) + written + source.slice(start + old.trimEnd().length)
}

function addPair(source: string, map: YAMLMap, written: string, { lineEnd }: Style): string {
  const last = map.items.at(-1)
  if (last === undefined) {
    const [start, end] = rangeOf(map)
    return `${source.slice(0, start)}{ ${written} }${source.slice(end)}`
  }
  const end = endOf(source, last)
  if (map.flow) return `${source.slice(0, end)}, ${written}${source.slice(end)}`
  const [keyStart] = rangeOf(last.key)
  const column = keyStart - (source.lastIndexOf('\n', keyStart - 1) + 1)
  const newline = source.indexOf('\n', end)
  const at = newline < 0 ? source.length : newline - (source[newline - 1] === '\r' ? 1 : 0)
  return `${source.slice(0, at)}${lineEnd}${' '.repeat(column)}${written}${source.slice(at)}`
}

function removePair(source: string, map: YAMLMap, at: number): string {
  const pair = map.items[at]!
  const next = map.items[at + 1]
  const [start] = rangeOf(pair.key)
  const end = endOf(source, pair)
  const lineStart = source.lastIndexOf('\n', start - 1) + 1
  const sharesLine = source.slice(lineStart, start).trim() !== '' || at === 0
  if (!map.flow && !sharesLine) {
    const newline = source.indexOf('\n', end)
    // the last line of the rule ends where the rule does
    return newline < 0
      ? source.slice(0, Math.max(0, lineStart - 1)).replace(/\r$/, '')
      : source.slice(0, lineStart) + source.slice(newline + 1)
  }
  if (next !== undefined) return source.slice(0, start) + source.slice(rangeOf(next.key)[0])
  const from = at > 0 ? endOf(source, map.items[at - 1]!) : start
  return source.slice(0, from) + source.slice(end)
}

/** Finds where the value of a pair ends, without white space behind it. */
function endOf(source: string, { key, value }: Pair): number {
  const [, keyEnd] = rangeOf(key)
  const [start, end] = rangeOf(value, keyEnd)
  return Math.max(keyEnd, start + source.slice(start, end).trimEnd().length)
}

function rangeOf(node: unknown, otherwise = 0): readonly [number, number] {
  const range = (node as { range?: readonly [number, number, number] | null } | null)?.range
  return range ? [range[0], range[1]] : [otherwise, otherwise]
}

function isBlock(node: unknown): boolean {
  const { items, flow } = (node ?? {}) as { items?: unknown; flow?: boolean }
  return items !== undefined && flow !== true
}

function setIn(options: Record<string, unknown>, [name = '', ...inner]: readonly string[], value: unknown): void {
  const known = Object.hasOwn(options, name) ? options[name] : undefined
  if (inner.length === 0) {
    if (value === null) delete options[name]
    else options[name] = value
    return
  }
  const isInside = typeof known === 'object' && known !== null && !Array.isArray(known)
  if (!isInside && value === null) {
    delete options[name]
    return
  }
  const child = isInside ? { ...(known as Record<string, unknown>) } : {}
  setIn(child, inner, value)
  options[name] = child
}
