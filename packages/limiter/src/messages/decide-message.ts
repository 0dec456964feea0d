import type { IncomingMessage } from 'node:http'
import type { Call } from '../call.ts'
import { DianaError } from '../errors.ts'
import { createFilter } from '../filters/filter.ts'
import { httpFramework } from '../filters/frameworks/http.ts'
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
}

/** Decides the messages of one connection. */
export interface MessageDecider {
  decide(signal: AbortSignal | (() => AbortSignal)): Verdict | Promise<Verdict>
  /** True if the refused message is dropped; otherwise the connection is closed. */
  drops(verdict: Verdict): boolean
}

/** Makes what decides the messages of connections; the request is the one that opened each. */
export function messageDeciders(
  limiter: Limiter,
  { rule, tooFast, attributes, onRefused }: CommonMessageOptions,
): (request: IncomingMessage) => MessageDecider {
  if (tooFast !== undefined && tooFast !== 'close' && tooFast !== 'drop') {
    throw new DianaError('BAD_CALL', `tooFast must be 'close' or 'drop', not ${JSON.stringify(tooFast)}`)
  }
  const filter = createFilter<IncomingMessage, never>(limiter, httpFramework as never, {})
  const asked = rule === undefined ? { message: true } : { rule, only: true }
  return request => {
    const call = callOfRequest(filter, request) as { attributes: Call['attributes'] } & Call
    if (attributes !== undefined) call.attributes = attributes(request)
    return {
      decide: signal => limiter.decide(call, { ...asked, signal }),
      drops: verdict => {
        onRefused?.(verdict, request)
        if (tooFast !== undefined) return tooFast === 'drop'
        return limiter.rules.some(({ id, whenFull }) => id === verdict.rule && whenFull === 'drop')
      },
    }
  }
}

/** Status 1013 of a close frame: try again later. */
export const TRY_AGAIN_LATER = 1013
export const REASON = 'too many messages'
