import type { FastifyPluginCallback, onRequestAsyncHookHandler } from 'fastify'

/** A plugin of one hook, asked of every call in the order in which filters are named. */
export function onRequest(name: string, hook: onRequestAsyncHookHandler): FastifyPluginCallback {
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    app.addHook('onRequest', hook)
    done()
  }
  // the hook is the gateway's own, not that of a scope apart: this is what the fastify-plugin package does
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: name,
  })
}
