import { expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'

const call = { method: 'GET', path: '/' }

it('status is short for answer.status, in a document and in a rule, also of addRule', async () => {
  const rules = [
    { id: 'a', limit: '1/h' },
    { id: 'b', limit: '0/h', status: 418, match: { path: '/b' } },
  ] as const
  const limiter = await createLimiter({ status: 429, answer: { headers: 'draft-7' }, rules })
  limiter.addRule({ id: 'c', limit: '0/h', status: 420, match: { path: '/c' } })
  await limiter.check(call)
  const answers = [
    await limiter.check(call),
    ...(await Promise.all(['/b', '/c'].map(path => limiter.check({ ...call, path })))),
  ]
  expect(answers.map(({ answer }) => answer)).toEqual([429, 418, 420].map(status => ({ status, headers: 'draft-7' })))
  await limiter.close()
})

it.each([
  [{ status: 99 }, 'status must be'],
  [{ status: '429' }, 'status must be'],
  [{ status: 204 }, 'status must be at least 400'],
  [{ status: 429, answer: { status: 503 } }, 'status is also in answer: write one of them'],
])('%j is a mistake, in a document and in a rule', async (wrong, message) => {
  const rule = { id: 'a', limit: '1/h' } as const
  await expect(createLimiter({ ...wrong, rules: [rule] } as never)).rejects.toThrow(message)
  await expect(createLimiter({ rules: [{ ...rule, ...wrong }] } as never)).rejects.toThrow(`rules[0].${message}`)
})
