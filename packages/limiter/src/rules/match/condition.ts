import { hostName } from '../../http/host-name.ts'
import type { Match } from '../rule.ts'
import { Glob } from './glob.ts'
import type { Search } from './search.ts'

/** The values that a call's are compared with: those of one rule, or an index of many rules. */
export interface Answers {
  /** Takes a value; returns true when no further value needs to be asked. */
  meet(value: string, search: Search): boolean
}

/** A part of a call that rules compare besides its path; rules with the same topic can share an index. */
export interface Topic {
  readonly name: string
  /** The header it is about, if it is about one. */
  readonly header: string | undefined
  /** Compares every value of the call with `answers`, until one matches. */
  ask(search: Search, answers: Answers): boolean
}

/** One topic and the values that satisfy a rule. */
export interface Condition {
  readonly topic: Topic
  readonly values: ReadonlySet<string>
  readonly answers: Answers
}

// A longer name is in no DNS; the bound keeps a host of 64 KiB of dots from being read 30 000 times.
const MAX_SUFFIX = 254

const method: Topic = {
  name: 'method',
  header: undefined,
  ask: (search, answers) =>
    askMethod(search.method, search, answers) || search.otherMethods.some(name => askMethod(name, search, answers)),
}

function askMethod(name: string, search: Search, answers: Answers): boolean {
  return answers.meet(name, search) || (name === 'HEAD' && answers.meet('GET', search))
}

/** `*.example.com` is kept as `.example.com`, and compared with the part of the call's host after each dot. */
const host: Topic = {
  name: 'host',
  header: undefined,
  ask: (search, answers) => {
    return askHost(search.host, search, answers) || askHost(search.authority, search, answers)
  },
}

function askHost(name: string, search: Search, answers: Answers): boolean {
  if (name === '') return false
  if (answers.meet(name, search)) return true
  const first = Math.max(name.length - MAX_SUFFIX, 1)
  for (let dot = name.lastIndexOf('.'); dot >= first; dot = name.lastIndexOf('.', dot - 1)) {
    if (answers.meet(name.slice(dot), search)) return true
  }
  return false
}

function headerTopic(header: string): Topic {
  return {
    name: `header:${header}`,
    header,
    ask: (search, answers) => {
      const value: unknown = search.headers?.[header]
      if (typeof value === 'string') return askLine(value, search, answers)
      return Array.isArray(value) && value.some(line => typeof line === 'string' && askLine(line, search, answers))
    },
  }
}

/** Asks for each item of a line: a header sent several times arrives joined by commas, so each is a value of its own too. */
function askLine(line: string, search: Search, answers: Answers): boolean {
  if (answers.meet(line, search)) return true
  if (!line.includes(',')) return false
  for (let start = 0; start <= line.length; ) {
    const comma = line.indexOf(',', start)
    const end = comma < 0 ? line.length : comma
    if (answers.meet(line.slice(start, end).trim(), search)) return true
    start = end + 1
  }
  return false
}

/** Makes the topic of an attribute; absent and empty values match nothing. */
function attributeTopic(attribute: string): Topic {
  return {
    name: `attribute:${attribute}`,
    header: undefined,
    ask: (search, answers) => {
      const value = search.attributes?.[attribute]
      return typeof value === 'string' && value !== '' && answers.meet(value, search)
    },
  }
}

/**
 * Patterns and exceptions cannot be looked up in an index by a value: this topic has one value, which a call has if one of the
 * patterns matches and none of the exceptions does.
 */
function attributePatterns(attribute: string, values: readonly string[]): Topic {
  const matchesOne = testFor(values.filter(value => !value.startsWith('!')))
  const isException = testFor(values.filter(value => value.startsWith('!')).map(value => value.slice(1)))
  const hasOnlyExceptions = values.every(value => value.startsWith('!'))
  return {
    name: `attribute:${attribute}:${JSON.stringify(values)}`,
    header: undefined,
    ask: (search, answers) => {
      const value = search.attributes?.[attribute]
      if (typeof value !== 'string' || value === '') return false
      if (isException(value) || !(hasOnlyExceptions || matchesOne(value))) return false
      return answers.meet(MATCHED, search)
    },
  }
}

function testFor(patterns: readonly string[]): (value: string) => boolean {
  const plain = new Set(patterns.filter(pattern => !pattern.includes('*')))
  const globs = patterns.filter(pattern => pattern.includes('*')).map(pattern => new Glob(pattern))
  return value => plain.has(value) || globs.some(glob => glob.matches(value))
}

const MATCHED = 'matched'

/** Returns all conditions of a rule besides the path; an empty list matches every call. */
export function conditionsOf(match: Match): Condition[] {
  const conditions: Condition[] = []
  const add = (topic: Topic, values: readonly string[]) => {
    if (values.length > 0) conditions.push(condition(topic, new Set(values)))
  }
  add(
    method,
    (match.method ?? []).map(name => name.toUpperCase()),
  )
  add(host, (match.host ?? []).map(canonicalHost))
  for (const [name, values] of Object.entries(match.header ?? {})) add(headerTopic(name.toLowerCase()), values)
  for (const [name, values] of Object.entries(match.attribute ?? {})) {
    if (values.some(value => value.includes('*') || value.startsWith('!')))
      add(attributePatterns(name, values), [MATCHED])
    else add(attributeTopic(name), values)
  }
  return conditions
}

/** Returns a host of a rule or a route as calls name it; `*.example.com` is kept as `.example.com`. */
export function canonicalHost(pattern: string): string {
  if (pattern.startsWith('*.')) return `.${canonicalHost(pattern.slice(2))}`
  return hostName(pattern) ?? pattern.toLowerCase()
}

function condition(topic: Topic, values: ReadonlySet<string>): Condition {
  return { topic, values, answers: { meet: value => values.has(value) } }
}
