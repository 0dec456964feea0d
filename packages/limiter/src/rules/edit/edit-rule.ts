import { isSeq, isMap as isYamlMap, type Pair, parseDocument, type YAMLMap, type YAMLSeq } from 'yaml'
import { composeYaml } from '../yaml/compose-yaml.ts'
import { readJson } from '../yaml/read-json.ts'

interface Span {
  /** The offset of the line of the item's dash; the item ends at `end`. */
  readonly start: number
  readonly end: number
  readonly indent: number
}

/** Returns the text of one rule of a document, without the dash; undefined if there is no such rule. */
export function ruleTextOf(text: string, id: string): string | undefined {
  return ruleTextsOf(text).get(id)
}

/** Returns the text of each rule of a document, by its id. */
export function ruleTextsOf(text: string): ReadonlyMap<string, string> {
  const rules = rulesIn(text)
  const texts = new Map<string, string>()
  for (const item of rules?.items ?? []) {
    const id = isYamlMap(item) ? item.get('id') : undefined
    if (typeof id !== 'string' || !isYamlMap(item) || !item.range) continue
    const [start, end] = item.range
    const column = start - (text.lastIndexOf('\n', start - 1) + 1)
    texts.set(id, dedent(text.slice(start, end).trimEnd(), item.flow ? 0 : column))
  }
  return texts
}

/**
 * Returns the document with one rule replaced, or added after the others; `ruleText` is undefined to remove it. Everything else
 * stays as written, comments included. Undefined if the document has no list of rules.
 */
export function editRule(text: string, id: string, ruleText: string | undefined): string | undefined {
  if (text.trim() === '') return ruleText === undefined ? undefined : `rules:\n${asItem(ruleText, 2)}`
  const rules = rulesIn(text)
  if (!rules) return undefined
  const place = rules.items.findIndex(item => isYamlMap(item) && item.get('id') === id)
  if (place < 0 && ruleText === undefined) return undefined
  const isPlain = !rules.flow && rules.items.every(item => isYamlMap(item)) && readJson(text) === undefined
  return isPlain ? splice(text, rules, place, ruleText) : rewrite(text, place, ruleText)
}

/** The place of a rule in a document. */
export interface RuleSpan {
  readonly start: number
  /** The end of its last value, or of the line of its last value. */
  readonly end: number
  /** The indent of its first option: 0 if it is written in braces. */
  readonly column: number
  /** The offset of the line that it begins on. */
  readonly lineStart: number
}

/** Finds where a rule stands in a document; undefined if there is no such rule, or not as a map of its own. */
export function ruleSpanOf(text: string, id: string): RuleSpan | undefined {
  const item = rulesIn(text)?.items.find(one => isYamlMap(one) && one.get('id') === id)
  if (!isYamlMap(item) || !item.range) return undefined
  const [start, valueEnd] = item.range
  const lineStart = text.lastIndexOf('\n', start - 1) + 1
  const end = start + text.slice(start, valueEnd).trimEnd().length
  if (item.flow) return { start, end, column: 0, lineStart }
  // a comment behind the last value belongs to it
  const rest = /^[^\r\n]*/.exec(text.slice(end))![0]
  return { start, end: end + rest.length, column: start - lineStart, lineStart }
}

function rulesIn(text: string): YAMLSeq | undefined {
  const { document, fault } = composeYaml(text)
  if (fault || !isYamlMap(document?.contents)) return undefined
  const rules = (document.contents as YAMLMap).items.find((pair: Pair) => String(pair.key) === 'rules')?.value
  return isSeq(rules) ? rules : undefined
}

function splice(text: string, rules: YAMLSeq, place: number, ruleText: string | undefined): string {
  const spans = rules.items.map(item => spanOf(text, item as YAMLMap))
  const indent = spans[0]?.indent ?? 2
  const lines = ruleText === undefined ? '' : asItem(ruleText, indent)
  const item = text.includes('\r\n') ? lines.replaceAll('\n', '\r\n') : lines
  if (place < 0) {
    const end = spans.at(-1)?.end ?? text.length
    const before = text.slice(0, end)
    return `${before}${before.endsWith('\n') ? '' : '\n'}${item}${text.slice(end)}`
  }
  const { start, end } = spans[place]!
  return `${text.slice(0, start)}${item}${text.slice(end)}`
}

function spanOf(text: string, item: YAMLMap): Span {
  const [from, valueEnd] = item.range!
  const dash = text.lastIndexOf('-', from - 1)
  const start = text.lastIndexOf('\n', dash) + 1
  const newline = text.indexOf('\n', Math.max(from, valueEnd - 1))
  // a comment behind the last value belongs to the item's last line
  return { start, end: newline < 0 ? text.length : newline + 1, indent: dash - start }
}

/** Returns a list in brackets, or JSON: written by the library, which keeps comments but not all white space. */
function rewrite(text: string, place: number, ruleText: string | undefined): string | undefined {
  const json = readJson(text)
  // within bounds of depth and size, which parseDocument has not
  if (ruleText !== undefined && composeYaml(ruleText).fault) return undefined
  const rule = ruleText === undefined ? undefined : parseDocument(ruleText)
  if (json !== undefined) {
    const rules = [...((json as { rules: unknown[] }).rules ?? [])]
    rules.splice(place < 0 ? rules.length : place, place < 0 ? 0 : 1, ...(rule ? [rule.toJS() as unknown] : []))
    return `${JSON.stringify({ ...(json as object), rules }, undefined, 2)}\n`
  }
  const document = parseDocument(text)
  const rules = document.get('rules') as YAMLSeq
  if (!rule) rules.delete(place)
  else if (place < 0) rules.add(rule.contents)
  else rules.set(place, rule.contents)
  try {
    return document.toString({ lineWidth: 0 })
  } catch {
    return undefined // an alias of nothing
  }
}

/** Returns a rule as an item of a list, its dash at a column. */
function asItem(ruleText: string, indent: number): string {
  const lines = ruleText.replace(/\r\n/g, '\n').trimEnd().split('\n')
  const first = lines.findIndex(line => line.trim() !== '' && !line.trim().startsWith('#'))
  const margin = lines[Math.max(0, first)]!.search(/\S|$/)
  const pad = ' '.repeat(indent)
  const isItem = /^\s*- /.test(lines[first] ?? '')
  return lines
    .map((line, i) => {
      const rest = line.slice(Math.min(margin, line.search(/\S|$/)))
      if (rest === '') return ''
      if (i < first) return `${pad}${rest}`
      if (isItem) return `${pad}${rest}`
      return `${pad}${i === first ? '- ' : '  '}${rest}`
    })
    .map(line => `${line}\n`)
    .join('')
}

function dedent(text: string, column: number): string {
  const margin = new RegExp(`^ {0,${column}}`)
  return text
    .split('\n')
    .map((line, i) => (i === 0 ? line : line.replace(margin, '')))
    .join('\n')
}
