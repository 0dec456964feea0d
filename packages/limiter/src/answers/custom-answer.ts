import { validateHeaderName, validateHeaderValue } from 'node:http'
import { DianaError } from '../errors.ts'
import type { Verdict } from '../verdict.ts'
import { type Refusal, refusal } from './answer.ts'
import type { HeaderLine } from './headers.ts'

/** The answer of an application to a refused call, instead of Diana's own; omitted fields keep their defaults. */
export interface CustomAnswer {
  /** From 200 on: a friendly page may be a success. */
  readonly status?: number | undefined
  /** Text, or what is sent as JSON. */
  readonly body?: string | object | undefined
  /** `text/plain; charset=utf-8` for text and `application/json` otherwise by default. */
  readonly contentType?: string | undefined
  /** Further headers, by name. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Returns the refusal as the application wants it answered; throws if it cannot be sent so. */
export function customRefusal(verdict: Verdict, nowMs: number, custom: CustomAnswer | undefined): Refusal {
  if (custom === undefined || custom === null) return refusal(verdict, nowMs)
  const { status = verdict.answer.status, body, contentType, headers = {} } = custom
  if (!(Number.isInteger(status) && status >= 200 && status <= 599)) {
    throw new DianaError('BAD_CALL', `onRefused gave the status ${String(status)}: give one from 200 to 599`)
  }
  const answer = { ...verdict.answer, status, ...(body !== undefined && { body, contentType }) }
  const { rule, reason, retryAfterMs, decisions } = verdict
  const own = refusal({ rule, reason, retryAfterMs, decisions, answer }, nowMs)
  const further = Object.entries(headers)
  for (const [name, value] of further) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
  }
  return { ...own, headers: withFurther(own.headers, further) }
}

/** Names are compared without their case, so that none is sent twice. */
function withFurther(lines: readonly HeaderLine[], further: readonly HeaderLine[]): HeaderLine[] {
  const names = new Set(further.map(([name]) => name.toLowerCase()))
  return [...lines.filter(([name]) => !names.has(name.toLowerCase())), ...further]
}
