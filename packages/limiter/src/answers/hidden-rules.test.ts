import { expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { headerStyles } from '../rules/answer-option.ts'
import { rateLimitHeaders } from './headers.ts'

const call = { method: 'GET', path: '/' }

it.each(headerStyles)('headers of the form %s do not name a rule with headers: none beside others', async headers => {
  const open = { id: 'open', limit: '5/h', algorithm: 'fixed-window' } as const
  const hidden = { id: 'hidden', limit: '2/h', answer: { headers: 'none' } } as const
  const alone = await createLimiter({ answer: { headers }, clock: () => 1e12, rules: [open] })
  const beside = await createLimiter({ answer: { headers }, clock: () => 1e12, rules: [hidden, open] })
  const lines = rateLimitHeaders(await alone.check(call), 1e12)
  expect(rateLimitHeaders(await beside.check(call), 1e12)).toEqual(lines)
  expect(lines.length > 0).toBe(headers !== 'none')
  await beside.check(call)
  const refused = await beside.check(call)
  expect([refused.allowed, refused.rule, rateLimitHeaders(refused, 1e12)]).toEqual([false, 'hidden', []])
  await alone.close()
  await beside.close()
})
