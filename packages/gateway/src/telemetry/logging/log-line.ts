import type { Verdict } from 'diana-limiter'
import type { AccessLogSettings } from '../../settings/access-log-settings.ts'
import type { CallRecord } from '../call-record.ts'
import { parseTraceparent } from '../ids.ts'
import { escapeJson, escapeLog } from './escape.ts'

/** A call that has ended, with what else a line says of it. */
export interface LoggedCall {
  readonly record: CallRecord
  /** The caller's address as rules count it. */
  readonly address: string | undefined
  readonly verdict: Verdict | undefined
  readonly endedTime: number
  /** True if queries are left out. */
  readonly hidesQuery: boolean
  /** The fields that `diana replay` needs besides; undefined if they are not logged. */
  readonly replay?: ReplayFields | undefined
}

/** The parts of a call that rules have read, and when. */
export interface ReplayFields {
  readonly decidedUs: number
  /** By the clock of rules, now. */
  readonly nowUs: number
  readonly keys: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
}

export type LineFormat = (call: LoggedCall) => string

// a line of these is no longer than what a pipe takes at once
const maxTarget = 1600
const maxReferer = 500
const maxAgent = 300
const maxHost = 262
const maxName = 128
const maxValue = 256

/** One line for each format that `accessLog.format` names. */
export const lineFormats: Readonly<Record<AccessLogSettings['format'], LineFormat>> = {
  json: jsonLine,
  combined: combinedLine,
}

/** Returns one JSON object per line; what is unknown is left out. */
function jsonLine(call: LoggedCall): string {
  const { record, address, verdict } = call
  const { method, request, route, upstream } = record
  const { httpVersion, headers } = request
  let line = `{"time":"${new Date(call.endedTime - record.totalMs).toISOString()}"`
  line += text('address', address, maxHost)
  line += text('method', method, maxName)
  line += text('path', target(call), maxTarget)
  line += text('protocol', method === undefined ? undefined : `HTTP/${httpVersion}`, maxName)
  line += text('host', headers.host, maxHost)
  line += `,"status":${record.status},"end":"${record.end}","bytesIn":${record.bytesIn},"bytesOut":${record.bytesOut}`
  line += milliseconds('ms', record.totalMs)
  line += milliseconds('queueMs', record.slotMs + (verdict?.waitMs ?? 0))
  line += milliseconds('upstreamFirstByteMs', record.firstByteMs)
  line += milliseconds('upstreamMs', record.upstreamMs)
  line += text('route', route?.label, maxName)
  line += text('upstream', upstream?.name, maxName)
  if (record.tries > 0) line += `,"tries":${record.tries}`
  line += verdictFields(verdict)
  line += text('reason', verdict?.allowed === false ? verdict.reason : record.unsentReason, maxName)
  line += costFields(record.costs)
  if (call.replay) line += replayFields(call, call.replay)
  line += text('requestId', record.requestId, maxName)
  line += text('traceId', record.trace?.traceId ?? parseTraceparent(headers.traceparent)?.traceId, maxName)
  line += text('userAgent', headers['user-agent'], maxAgent)
  line += text('referer', referer(call), maxReferer)
  return `${line}}\n`
}

/** As Apache and nginx write it: what they log as unknown is a hyphen. */
function combinedLine(call: LoggedCall): string {
  const { record, address = '-' } = call
  const { method } = record
  const { httpVersion, headers } = record.request
  const request =
    method === undefined
      ? '-'
      : `${escapeLog(method, maxName)} ${escapeLog(target(call) ?? '', maxTarget)} HTTP/${httpVersion}`
  const time = combinedTime(call.endedTime - record.totalMs)
  const said = `"${escapeLog(referer(call) ?? '-', maxReferer)}" "${escapeLog(headers['user-agent'] ?? '-', maxAgent)}"`
  return `${escapeLog(address, maxHost)} - - [${time}] "${request}" ${record.status} ${record.bodyBytesOut} ${said}\n`
}

function verdictFields(verdict: Verdict | undefined): string {
  if (verdict === undefined) return ''
  let fields = `,"verdict":"${verdict.allowed ? 'passed' : 'refused'}"`
  fields += text('rule', verdict.rule, maxName)
  let shadow: string | undefined
  for (const decision of verdict.decisions) {
    if (decision.shadow && !decision.allowed)
      shadow = shadow === undefined ? decision.rule : `${shadow} ${decision.rule}`
  }
  return fields + text('shadow', shadow, maxName)
}

/** Writes what the call cost by rules that read it from bodies: reserved at first, settled in the end, and by what. */
function costFields(costs: CallRecord['costs']): string {
  if (costs === undefined) return ''
  const each = costs.map(
    ({ rule, reserved, settled, by }) =>
      `"${escapeJson(rule, maxName)}":{"reserved":${reserved},"settled":${settled},"by":"${by}"}`,
  )
  return `,"costs":{${each.join(',')}}`
}

function replayFields({ record, verdict }: LoggedCall, { decidedUs, nowUs, keys, headers }: ReplayFields): string {
  let fields = `,"us":${decidedUs},"turn":${record.turn},"endUs":${record.endUs || nowUs}`
  if (record.endTurn > 0) fields += `,"endTurn":${record.endTurn}`
  if (verdict && verdict.waitMs > 0) fields += `,"waitUs":${Math.round(verdict.waitMs * 1000)}`
  if (record.end === 'aborted') fields += ',"left":true'
  fields += outcomeFields(record, verdict)
  return fields + object('keys', keys) + object('headers', headers)
}

/** Writes how rules saw the end of a call that passed, if its status does not say it: 0 if that is not known. */
function outcomeFields(record: CallRecord, verdict: Verdict | undefined): string {
  if (verdict?.allowed !== true) return ''
  const { status = 0, by } = record.outcomeOf(record.end === 'complete')
  return (status === record.status ? '' : `,"outcome":${status}`) + (by === 'gateway' ? ',"own":true' : '')
}

function object(name: string, values: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(values).map(
    ([key, value]) => `"${escapeJson(key, maxName)}":"${escapeJson(value, maxValue)}"`,
  )
  return pairs.length === 0 ? '' : `,"${name}":{${pairs.join(',')}}`
}

function text(name: string, value: string | undefined, maxLength: number): string {
  return value === undefined || value === '' ? '' : `,"${name}":"${escapeJson(value, maxLength)}"`
}

/** Writes milliseconds with three decimals: a clock gives no more than microseconds. */
function milliseconds(name: string, value: number | undefined): string {
  return value === undefined ? '' : `,"${name}":${Math.round(value * 1000) / 1000}`
}

function target({ record, hidesQuery }: LoggedCall): string | undefined {
  return hidesQuery ? withoutQuery(record.target) : record.target
}

function referer({ record, hidesQuery }: LoggedCall): string | undefined {
  const { referer: value } = record.request.headers
  return hidesQuery && value !== undefined ? withoutQuery(value) : value
}

function withoutQuery(url: string): string {
  const question = url.indexOf('?')
  return question < 0 ? url : url.slice(0, question)
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

let timeSecond = 0
let timeText = ''

/** Writes the time of the combined format, once a second. */
function combinedTime(ms: number): string {
  const second = Math.floor(ms / 1000)
  if (second !== timeSecond) {
    const iso = new Date(second * 1000).toISOString()
    timeText = `${iso.slice(8, 10)}/${months[Number(iso.slice(5, 7)) - 1]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`
    timeSecond = second
  }
  return timeText
}
