import type { Expectation, RuleNames } from './case-file.ts'
import { durationUs, isMap, type Path, type Reader, show } from './reader.ts'

type Draft = { -readonly [Name in keyof Expectation]: Expectation[Name] }

const WORDS = [
  'result',
  'by',
  'reportedBy',
  'reason',
  'waits',
  'left',
  'retryAfter',
  'status',
  'headers',
  'passed',
  'refused',
]
const REASONS = ['overload', 'limit', 'queue-full', 'timeout', 'denied', 'blocked', 'ambiguous']
const PHRASES =
  'write pass, refused, refused by RULE, reported by RULE, blocked, denied, waits 300ms, 3 left, 3 left of RULE, retry after 2s, status 429, 100 pass, 20 refused or 20 refused by RULE'
const MOST = 1_000_000_000_000_000

/** One phrase, such as `refused by login`, and what it says. */
const phrases: readonly (readonly [RegExp, (found: readonly string[], draft: Draft) => boolean])[] = [
  [/^(?:pass|passes|passed|allowed)$/, (_, draft) => set(draft, 'result', 'pass')],
  [/^refused?$/, (_, draft) => set(draft, 'result', 'refused')],
  [/^refused by ([\w.-]+)$/, ([by], draft) => set(draft, 'result', 'refused') && set(draft, 'by', by!)],
  [/^reported by ([\w.-]+)$/, ([rule], draft) => set(draft, 'result', 'pass') && set(draft, 'reportedBy', rule!)],
  [
    /^(blocked|denied|ambiguous|timeout|queue-full)(?: by ([\w.-]+))?$/,
    ([reason, by], draft) =>
      set(draft, 'result', 'refused') && set(draft, 'reason', reason!) && (by === undefined || set(draft, 'by', by)),
  ],
  [
    /^waits (\S+)$/,
    ([time], draft) => inMs(time!, ms => set(draft, 'waitsMs', ms) && set(draft, 'result', draft.result ?? 'pass')),
  ],
  [/^(\d{1,15}) left$/, ([left], draft) => set(draft, 'left', Number(left))],
  [
    /^(\d{1,15}) left of ([\w.-]+)$/,
    ([left, rule], draft) => set(draft, 'left', Number(left)) && set(draft, 'leftOf', rule!),
  ],
  [/^retry after (.+)$/, ([time], draft) => inMs(time!, ms => set(draft, 'retryAfterMs', ms))],
  [/^status (\d{3})$/, ([status], draft) => set(draft, 'status', Number(status))],
  [/^(\d{1,15}) (?:calls )?(?:pass|passed)$/, ([count], draft) => set(draft, 'passed', Number(count))],
  [/^(\d{1,15}) (?:calls )?refused$/, ([count], draft) => set(draft, 'refused', Number(count))],
  [
    /^(\d{1,15}) (?:calls )?refused by ([\w.-]+)$/,
    ([count, rule], draft) => {
      if (Object.hasOwn(draft.refusedBy, rule!)) return false
      draft.refusedBy = { ...draft.refusedBy, [rule!]: Number(count) }
      return true
    },
  ],
]

/** Reads what a step expects: phrases with commas between them, or a map. Left out, calls pass. */
export function readExpectation(reader: Reader, value: unknown, path: Path, names: RuleNames): Expectation {
  const draft: Draft = { place: reader.place(path), refusedBy: {} }
  if (value === undefined) draft.result = 'pass'
  else if (isMap(value)) readMap(reader, value, path, draft)
  else if (typeof value === 'string' || Array.isArray(value)) readPhrases(reader, value, path, draft)
  else reader.fault(path, `expect must be text or a map, not ${show(value)}: ${PHRASES}`)
  draft.result ??= usualResult(draft)
  for (const rule of [draft.by, draft.reportedBy, draft.leftOf, ...Object.keys(draft.refusedBy)]) {
    if (rule !== undefined) reader.name(rule, path, names.rules, 'rule')
  }
  return draft
}

/** Returns the result that a call must have if a case does not name the result. */
function usualResult({ by, reason, retryAfterMs, status, passed, refused, refusedBy }: Draft): Draft['result'] {
  if (passed !== undefined || refused !== undefined || Object.keys(refusedBy).length > 0) return undefined
  return [by, reason, retryAfterMs, status].some(one => one !== undefined) ? 'refused' : 'pass'
}

function readPhrases(reader: Reader, value: string | readonly unknown[], path: Path, draft: Draft): void {
  const given = typeof value === 'string' ? value.split(',') : value
  for (const [index, one] of given.entries()) {
    const at = typeof value === 'string' ? path : [...path, index]
    const text = typeof one === 'string' ? one.trim().replace(/\s+/g, ' ') : ''
    const found = text.length > 200 ? undefined : phrases.find(([pattern]) => pattern.test(text))
    if (found === undefined) reader.fault(at, `${show(one)} is no expectation: ${PHRASES}`)
    else if (!found[1](found[0].exec(text)!.slice(1), draft)) {
      reader.fault(at, `${show(text)} contradicts what stands beside it, or its time is none: keep one of them`)
    }
  }
}

function readMap(reader: Reader, value: Readonly<Record<string, unknown>>, path: Path, draft: Draft): void {
  reader.map(value, path, WORDS, 'expect')
  const at = (word: string): Path => [...path, word]
  const whole = (word: string, most = MOST): number | undefined =>
    value[word] === undefined ? undefined : reader.whole(value[word], at(word), word, 0, most)
  if (value.result !== undefined) {
    if (value.result === 'pass' || value.result === 'refused') draft.result = value.result
    else reader.fault(at('result'), `result must be pass or refused, not ${show(value.result)}`)
  }
  if (value.by !== undefined) draft.by = reader.text(value.by, at('by'), 'by')
  if (value.reportedBy !== undefined) draft.reportedBy = reader.text(value.reportedBy, at('reportedBy'), 'reportedBy')
  if (value.reason !== undefined) {
    if (REASONS.includes(String(value.reason))) draft.reason = String(value.reason)
    else reader.unknown(String(value.reason), at('reason'), REASONS)
  }
  const inTime = (word: string): number | undefined => {
    const us = value[word] === undefined ? undefined : reader.duration(value[word], at(word), word)
    return us === undefined ? undefined : us / 1000
  }
  draft.waitsMs = inTime('waits')
  draft.retryAfterMs = inTime('retryAfter')
  if (isMap(value.left)) {
    const [[rule, left] = ['', undefined], ...more] = Object.entries(value.left)
    if (more.length > 0) reader.fault(at('left'), 'left must name one rule: write a number, or RULE: number')
    draft.leftOf = rule
    draft.left = reader.whole(left, [...at('left'), rule], 'left', 0, MOST)
  } else draft.left = whole('left')
  draft.status = whole('status', 599)
  draft.passed = whole('passed')
  if (isMap(value.refused)) {
    const counts: Record<string, number> = {}
    for (const [rule, count] of Object.entries(value.refused)) {
      counts[rule] = reader.whole(count, [...at('refused'), rule], 'refused', 0, MOST) ?? 0
    }
    draft.refusedBy = counts
  } else draft.refused = whole('refused')
  if (value.headers !== undefined) draft.headers = readTexts(reader, value.headers, at('headers'), 'headers')
  const isCheck = Object.keys(value).length > 0
  if (!isCheck) reader.fault(path, `expect is empty: ${PHRASES}`)
}

/** Reads a map of texts with names in lower case. */
export function readTexts(reader: Reader, value: unknown, path: Path, what: string): Record<string, string> {
  const texts: Record<string, string> = {}
  if (!isMap(value)) reader.fault(path, `${what} must be a map of names and texts, not ${show(value)}`)
  else {
    for (const [name, one] of Object.entries(value)) {
      const text = reader.text(one, [...path, name], name)
      if (text !== undefined) texts[name.toLowerCase()] = text
    }
  }
  return texts
}

function set<Name extends keyof Draft>(draft: Draft, name: Name, value: NonNullable<Draft[Name]>): boolean {
  if (draft[name] !== undefined && draft[name] !== value) return false
  draft[name] = value
  return true
}

function inMs(text: string, then: (ms: number) => boolean): boolean {
  const us = durationUs(text)
  return us !== undefined && then(us / 1000)
}
