import type { FastifyPluginCallback, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import type { Limiter } from '../limiter.ts'
import { FastifyCall, type ResourceOf } from './fastify-call.ts'
import { FastifyVisit } from './fastify-visit.ts'

export interface FastifyFilterOptions {
  /** What `by: resource` counts: each route (the default), or each path, where one route serves many things. */
  readonly resource?: ResourceOf | undefined
}

interface Judged extends FastifyRequest {
  [judgedBy]?: Limiter
}

const judgedBy: unique symbol = Symbol('diana.judgedBy')

/** Judges every request to a Fastify application, before anything else is done for it: `app.register(diana(limiter))`. */
export function diana(limiter: Limiter, options: FastifyFilterOptions = {}): FastifyPluginCallback {
  const resourceOf = options.resource ?? 'route'

  const onRequest = (request: Judged, reply: FastifyReply, done: HookHandlerDoneFunction): void => {
    // mounted on an application and again on a part of it, she judges once
    if (request[judgedBy] === limiter) {
      done()
      return
    }
    request[judgedBy] = limiter
    new FastifyVisit(request, reply, done).judge(limiter, new FastifyCall(request, limiter, resourceOf))
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    app.addHook('onRequest', onRequest)
    done()
  }
  // the hook is the application's own, not that of a scope apart: this is what the fastify-plugin package does
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'diana',
  })
}
