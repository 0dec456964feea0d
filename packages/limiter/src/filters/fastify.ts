import type { FastifyPluginCallback, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import { fastifyFramework } from './fastify-framework.ts'
import type { FilterOptions } from './filter.ts'

/** Judges every request to a Fastify application, before anything else is done for it: `app.register(diana(limiter))`. */
export function diana(limiter: Limiter, options: FilterOptions<FastifyRequest> = {}): FastifyPluginCallback {
  const onRequest = hook(limiter, options)
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

function hook(limiter: Limiter, options: FilterOptions<FastifyRequest>): onRequestHookHandler {
  const filter = { limiter, framework: fastifyFramework, options }
  return (request, reply, done) => {
    const passes = admit(filter, request, reply)
    if (passes === true) done()
    else if (passes !== false) passes.then(passed => passed && done(), done)
  }
}
