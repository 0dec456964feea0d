import { cpuTimeOf } from '@test/cpu-time'
import { expect, test } from 'vitest'
import { refusal } from '../../packages/limiter/src/answers/answer.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'
import type { Verdict } from '../../packages/limiter/src/verdict.ts'

const hostile = '/a%3b/%2f\\'.repeat(1500)
const call = { method: 'GET', path: hostile, ip: '192.0.2.1' }
const rule = { id: 'x', match: { path: '/**/x' }, limit: '5/h' }

async function decide(rules: readonly RuleOptions[], more: object = {}): Promise<Verdict> {
  const limiter = await createLimiter({ rules, ...more })
  const verdict = await limiter.check(call)
  await limiter.close()
  return verdict
}

test('a path that can be read in too many ways gets 400 if a rule asks for the path, and nothing is charged', async () => {
  const verdict = await decide([rule, { id: 'all', limit: '5/h' }])
  expect(verdict).toMatchObject({ allowed: false, reason: 'ambiguous', rule: undefined, decisions: [] })
  const { status, body } = refusal(verdict, 0)
  expect([status, JSON.parse(body).detail]).toEqual([400, expect.stringContaining('too many ways')])
})

test.each<[string, readonly RuleOptions[], object]>([
  ['no rule asks for the path', [{ id: 'all', by: 'ip', limit: '5/h' }], {}],
  ['its caller is on the list of those who pass', [rule], { allow: { ip: '192.0.2.1' } }],
])('a path that can be read in too many ways passes if %s', async (_kind, rules, more) => {
  expect((await decide(rules, more)).allowed).toBe(true)
})

test('a rule by resource answers 400 to a path that can be read in too many ways', async () => {
  expect(await decide([{ id: 'each', by: 'resource', limit: '5/h' }])).toMatchObject({
    allowed: false,
    reason: 'ambiguous',
  })
})

test('a path of 15 KB that is hostile in any way costs a few milliseconds at most', async () => {
  const rules: RuleOptions[] = [rule, { id: 'below', match: { path: '/admin/**' }, by: 'resource', limit: '5/h' }]
  const limiter = await createLimiter({ rules })
  const pieces = [
    'a%3b/%2f\\',
    '../%2f',
    'a%3b/%2f\\../',
    '%5c..%2f;/',
    'a//..;x%2f',
    '%2f',
    '%3b/',
    '%2f;',
    'é%2f',
    '%C3%A9%2f',
  ]
  const spentMs = cpuTimeOf(() => {
    for (const piece of pieces) {
      for (const caseInsensitive of [true, false]) {
        const path = `/${piece.repeat(15_000 / piece.length)}`
        void limiter.decide({ method: 'GET', path, caseInsensitive })
        void limiter.decide({ method: 'GET', path: `/${'a'.repeat(14_900)}${piece}`, caseInsensitive })
      }
    }
  })
  await limiter.close()
  // 40 paths: 10 ms each before they were bounded
  expect(spentMs).toBeLessThan(40 * 4)
})
