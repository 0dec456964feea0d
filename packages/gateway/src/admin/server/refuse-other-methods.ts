import { METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { Refusal, sendRefusal } from '../../http/refusal.ts'

/** Watches which routes are added; what it returns is called after the last one, and answers all other methods with 405. */
export function refuseOtherMethods(app: FastifyInstance): () => void {
  const methodsOf = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = methodsOf.get(url) ?? new Set()
    methodsOf.set(url, known)
    for (const one of [method].flat()) known.add(one)
  })
  return () => {
    const all = METHODS.filter(method => method !== 'CONNECT')
    for (const method of all) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
    for (const [url, known] of [...methodsOf]) {
      const allow = [...known].sort().join(', ')
      const refusal = new Refusal(405, `This can be asked by ${allow} only.`, {}, { Allow: allow })
      app.route({
        method: all.filter(method => !known.has(method)),
        url,
        // before the body is read
        onRequest: async (_request, reply) => sendRefusal(reply, refusal),
        handler: async () => undefined,
      })
    }
  }
}
