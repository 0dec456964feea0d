// Uses the packed library as a CommonJS program does. The argument is a rule file that admits two calls; prints "true true false".
const { createLimiter, DianaError } = require('diana-limiter')
const entries = [
  'http',
  'express',
  'fastify',
  'fetch',
  'koa',
  'hono',
  'schema',
  'filter',
  'admin',
  'decorators',
  'gateway',
  'counting',
  'testing',
]

async function main(config) {
  for (const entry of entries) require(`diana-limiter/${entry}`)
  const limiter = await createLimiter({ config })
  const call = { method: 'GET', path: '/', ip: '203.0.113.9', headers: {} }
  const verdicts = [await limiter.check(call), await limiter.check(call), await limiter.check(call)]
  console.log(verdicts.map(({ allowed }) => allowed).join(' '))
  await limiter.close()
  const refused = await createLimiter({ rules: [{ id: 'a', limit: 'many' }] }).catch(error => error)
  if (!(refused instanceof DianaError)) throw new Error('DianaError is not the class that is thrown')
}

main(process.argv[2])
