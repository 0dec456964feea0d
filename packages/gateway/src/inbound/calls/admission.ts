import type { Limiter } from 'diana-limiter'
import { admit, createFilter, type Filter } from 'diana-limiter/filter'
import { askForBody } from '../../http/body.ts'
import type { CallReply, CallRequest } from '../../http/call.ts'
import type { GatewaySettings } from '../../settings/gateway-settings.ts'
import { nextTurn, recordOf } from '../../telemetry/call-record.ts'
import { tellRequestId } from '../../telemetry/request-ids.ts'
import { callFramework } from './call-framework.ts'
import { answerCors } from './cors.ts'

/** Called with an error if the request could not be judged. */
export type OnAdmitted = (error?: Error) => void

/** What every request passes first, before filters and routes: the limits. */
export class Admission {
  readonly #filter: Filter<CallRequest, CallReply>
  readonly #settings: () => GatewaySettings

  constructor(limiter: Limiter, settings: () => GatewaySettings) {
    this.#filter = createFilter(limiter, callFramework, {})
    this.#settings = settings
  }

  /** Answers the request, or calls `onAdmitted`; at once unless the request has to wait. */
  admit(request: CallRequest, reply: CallReply, onAdmitted: OnAdmitted): void {
    const { cors, answerHeaders } = this.#settings()
    tellRequestId(request, reply)
    // before any rule counts: refusals carry these headers as well
    for (const name in answerHeaders) reply.header(name, answerHeaders[name]!)
    if (cors !== undefined && answerCors(request, reply, cors)) return
    const record = recordOf(request.raw)
    if (record !== undefined) record.turn = nextTurn()
    const isAdmitted = admit(this.#filter, request, reply)
    if (isAdmitted === true) this.#pass(request, reply, onAdmitted)
    else if (isAdmitted !== false) {
      isAdmitted.then(admitted => admitted && this.#pass(request, reply, onAdmitted), onAdmitted)
    }
  }

  #pass(request: CallRequest, reply: CallReply, onAdmitted: OnAdmitted): void {
    askForBody(request.raw, reply.raw)
    onAdmitted()
  }
}
