import { createLimiter } from 'diana-limiter'
import { describe, expect, it, onTestFinished } from 'vitest'
import { importExpress } from './import-express.ts'

const fixed = { by: 'ip', algorithm: 'fixed-window', align: 'first-call', answer: { status: 429 } }

describe('limits of express-rate-limit', () => {
  it.each([
    ['windowMs: 15 * 60 * 1000, max: 100', { ...fixed, limit: '100/15m' }],
    ['windowMs: 60_000, limit: 3, standardHeaders: true', { ...fixed, limit: '3/m' }],
    ['limit: 3, // per minute\n', { ...fixed, limit: '3/m' }],
    ['windowMs: 500, "max": 3, message: { error: "no, }" }', { ...fixed, limit: '3/500ms' }],
    ['max: 3, statusCode: 503', { ...fixed, limit: '3/m', answer: { status: 503 } }],
    ['max: 3, skipSuccessfulRequests: true', { ...fixed, limit: '3/m', countWhen: 'failed' }],
    ['max: 3, skipFailedRequests: true', { ...fixed, limit: '3/m', countWhen: '200-399' }],
    ['max: 3, identifier: "api"', { ...fixed, id: 'api', limit: '3/m' }],
  ])('rateLimit({ %s }) is a rule of all calls', async (options, rule) => {
    const { rules, warnings } = importExpress(`app.use(rateLimit({ ${options} }))`)
    expect(rules).toEqual([{ id: 'rate-limit', ...rule }])
    expect(warnings).toEqual([])
    const limiter = await createLimiter({ rules: rules as never })
    onTestFinished(() => limiter.close())
    expect(limiter.rules).toHaveLength(1)
  })

  it('routes are paths and methods, of limiters in variables too', () => {
    const { rules, warnings } = importExpress(`
      import { rateLimit } from 'express-rate-limit'
      const api = rateLimit({ max: 10 })
      const login: RequestHandler = rateLimit({ max: 5, windowMs: 3600000 })
      app.use('/api/', cors(), other)
      app.use('/api/', helmet, api)
      app.post('/login', login, async (request, response) => response.send('ok'))
      app.get('/users/:id', rateLimit({ max: 2 }), show)
    `)
    expect(rules).toMatchObject([
      { id: 'api', match: { path: ['/api', '/api/**'] }, limit: '10/m' },
      { id: 'login', match: { path: ['/login'], method: ['POST'] }, limit: '5/h' },
      { id: 'rate-limit', match: { path: ['/users/:id'], method: ['GET'] }, limit: '2/m' },
    ])
    expect(warnings).toEqual([])
  })

  it.each([
    ['app.use(rateLimit({ max: perMinute }))', 0, 'limit and windowMs are no plain numbers'],
    [
      'app.use(rateLimit({ max: 3, keyGenerator: r => r.get("x") }))',
      1,
      'keyGenerator is left out: calls are counted by',
    ],
    [
      'app.use(rateLimit({ max: 3, skip(request) { return a({}, [1, 2]) } }))',
      1,
      'skip is left out: all calls are counted',
    ],
    ['const unused = rateLimit({ max: 3 })', 1, 'no route uses it in this file'],
    [
      'const one = rateLimit({ max: 3 }); app.get("/a", one); app.get("/b", one)',
      2,
      '2 routes use it, which are 2 rules',
    ],
  ])('%s has a warning', (program, count, warning) => {
    const { rules, warnings } = importExpress(program)
    expect(rules).toHaveLength(count)
    expect(warnings).toEqual([expect.stringContaining(`line 1: ${warning}`)])
  })

  it('a call in a comment is no rule', () => {
    expect(importExpress('// app.use(rateLimit({ max: 3 }))\n/* rateLimit({ max: 3 }) */').rules).toEqual([])
  })

  it('a program that breaks off ends in what could be read', () => {
    const program = `app.use('/a', rateLimit({ max: 3, message: 'x', windowMs: 10 * 1000 })) // end`
    for (let length = 0; length < program.length; length++) {
      expect(importExpress(program.slice(0, length)).rules.length).toBeLessThan(2)
    }
  })
})
