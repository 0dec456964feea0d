import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import type { Call } from '../call.ts'
import type { CheckOptions, Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { rateLimitHeaders, refusal } from './answer.ts'

/** One request on its way past Diana. It is watched until it ends only where it waits or holds a place. */
export class FastifyVisit implements CheckOptions {
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #done: HookHandlerDoneFunction
  #controller: AbortController | undefined
  #held: Verdict | undefined
  #watched = false
  #gone = false

  constructor(request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) {
    this.#request = request
    this.#reply = reply
    this.#done = done
  }

  /** Ends a wait when the caller leaves. The limiter asks for it only where there is one. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  judge(limiter: Limiter, call: Call): void {
    let verdict: Verdict | Promise<Verdict>
    try {
      verdict = limiter.decide(call, this)
    } catch (error) {
      this.#passDespite(error)
      return
    }
    if (verdict instanceof Promise) this.#wait(verdict)
    else this.#answer(verdict)
  }

  #wait(pending: Promise<Verdict>): void {
    this.#watch()
    pending.then(
      verdict => this.#answer(verdict),
      error => {
        // whoever has left wants no answer
        if (this.#gone) this.#reply.hijack()
        else this.#passDespite(error)
      },
    )
  }

  #answer(verdict: Verdict): void {
    try {
      if (!verdict.allowed) {
        this.#refuse(verdict)
        return
      }
      if (verdict.holds) this.#hold(verdict)
      for (const [name, value] of rateLimitHeaders(verdict, Date.now())) this.#reply.header(name, value)
    } catch (error) {
      this.#passDespite(error)
      return
    }
    this.#done()
  }

  #refuse(verdict: Verdict): void {
    const { status, headers, body } = refusal(verdict, Date.now())
    for (const [name, value] of headers) this.#reply.header(name, value)
    // bytes, since Fastify adds a charset to JSON text, and JSON has none
    this.#reply.code(status).send(Buffer.from(body))
  }

  /** Diana never breaks the service that she guards. */
  #passDespite(error: unknown): void {
    this.#request.log.error({ err: error }, 'Diana failed to judge this call, so it passes')
    this.#done()
  }

  #hold(verdict: Verdict): void {
    this.#held = verdict
    this.#watch()
    if (this.#gone) verdict.release()
  }

  #watch(): void {
    if (this.#watched) return
    this.#watched = true
    const { raw } = this.#reply
    // a hook before Diana's may have waited until the caller was gone
    if (raw.destroyed || this.#request.raw.aborted) this.#leave()
    else raw.once('close', () => this.#leave())
  }

  #leave(): void {
    this.#gone = true
    this.#controller?.abort()
    this.#held?.release()
  }
}
