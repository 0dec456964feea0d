import type { IncomingMessage } from 'node:http'
import type { Call } from '../call.ts'
import { isThenable, valueNow } from '../common/promises.ts'
import { engineOf } from '../engine/engine-of.ts'
import { DianaError } from '../errors.ts'
import { createFilter } from '../filters/filter.ts'
import { httpFramework } from '../filters/frameworks/http.ts'
import { readAttributes } from '../filters/given-attributes.ts'
import { type Failure, report } from '../filters/report.ts'
import { callOfRequest } from '../filters/request-call.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'

/** The options by which messages of connections are limited. */
export interface CommonMessageOptions {
  /** The rules by which messages are counted; default: those with `match: { websocket: messages }`. */
  readonly rule?: string | readonly string[] | undefined
  /** The end of a message that is too fast: the connection is closed, or it is dropped; default: what the rule says. */
  readonly tooFast?: 'close' | 'drop' | undefined
  /** Returns what the application knows of a connection, such as its account. */
  readonly attributes?: ((request: IncomingMessage) => Call['attributes']) | undefined
  /** Hears of each message that is too fast. */
  readonly onRefused?: ((verdict: Verdict, request: IncomingMessage) => void) | undefined
  /**
   * Called with every error of Diana or of these functions, instead of a warning. A message that Diana fails to decide passes, unless
   * `whenFailed` is `refuse`.
   */
  readonly onError?: ((error: unknown, request: IncomingMessage) => void) | undefined
}

/** The end of a message. */
export interface MessageDecision {
  readonly message: 'passes' | 'is dropped' | 'closes the connection'
  readonly retryAfterMs: number
}

/** One connection, as far as its messages are decided. */
export interface MessageSource {
  readonly signal: AbortSignal | (() => AbortSignal)
  /** True if the other side has left, so that it does not matter what becomes of a message. */
  isGone(): boolean
}

/** Decides a message of one connection; never throws, and never rejects. */
export type MessageDecider = (source: MessageSource) => MessageDecision | Promise<MessageDecision>

const passes: MessageDecision = { message: 'passes', retryAfterMs: 0 }
const closes: MessageDecision = { message: 'closes the connection', retryAfterMs: 0 }

/** Makes what decides the messages of connections; the request is the one that opened each. */
export function messageDeciders(
  limiter: Limiter,
  { rule, tooFast, attributes, onRefused, onError }: CommonMessageOptions,
): (request: IncomingMessage) => MessageDecider {
  if (tooFast !== undefined && tooFast !== 'close' && tooFast !== 'drop') {
    throw new DianaError('BAD_CALL', `tooFast must be 'close' or 'drop', not ${JSON.stringify(tooFast)}`)
  }
  const filter = createFilter<IncomingMessage, never>(limiter, httpFramework as never, { onError })
  const asked = rule === undefined ? { message: true } : { rule, only: true }
  return request => {
    const failed = (error: unknown, failure: Failure): void => report(error, request, filter, failure)
    const call = callOfRequest(filter, request) as { attributes: Call['attributes'] } & Call
    if (attributes !== undefined) {
      const unread = (error: unknown): void => failed(error, 'attributes')
      try {
        call.attributes = readAttributes(valueNow(attributes(request), 'attributes'), unread)
      } catch (error) {
        unread(error)
      }
    }
    const reportRefusal = (verdict: Verdict): void => {
      const unheard = (error: unknown): void => failed(error, 'onRefused')
      try {
        const given: unknown = onRefused?.(verdict, request)
        if (isThenable(given)) Promise.resolve(given).catch(unheard)
      } catch (error) {
        unheard(error)
      }
    }
    const follow = (verdict: Verdict): MessageDecision => {
      if (verdict.allowed) {
        if (verdict.holds) verdict.end({ failed: false })
        return passes
      }
      reportRefusal(verdict)
      const isDropped =
        tooFast === undefined
          ? limiter.rules.some(({ id, whenFull }) => id === verdict.rule && whenFull === 'drop')
          : tooFast === 'drop'
      return { message: isDropped ? 'is dropped' : 'closes the connection', retryAfterMs: verdict.retryAfterMs }
    }
    const fail = (error: unknown, source: MessageSource): MessageDecision => {
      if (source.isGone()) return passes
      failed(error, 'decision')
      return engineOf(limiter).passUnjudged() ? passes : closes
    }
    return source => {
      try {
        const verdict = limiter.decide(call, { ...asked, signal: source.signal })
        return verdict instanceof Promise ? verdict.then(follow).catch(error => fail(error, source)) : follow(verdict)
      } catch (error) {
        return fail(error, source)
      }
    }
  }
}

/** Status 1013 of a close frame: try again later. */
export const TRY_AGAIN_LATER = 1013
export const REASON = 'too many messages'
