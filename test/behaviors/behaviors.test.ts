import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { answers } from './answers.ts'
import { requests } from './requests.ts'
import { routing } from './routing.ts'
import { Stage } from './stage.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const behaviors = [...requests, ...answers, ...routing]

describe('what the test suites of other proxies check', () => {
  test.each(behaviors.map(row => [row.behavior, row] as const))('%s', async (_, row) => row.check(new Stage(rig)))
})

test('docs/behaviors.md lists the behaviors that are tested, with the suites that check them, and no others', () => {
  const page = readFileSync(new URL('../../docs/behaviors.md', import.meta.url), 'utf8')
  const [tested = ''] = page.split('## What is not done')
  const rows = [...tested.matchAll(/^\| (.+?) \| (.+?) \|$/gm)]
    .slice(1)
    .map(([, what, suites]) => `${what} | ${suites}`)
  const listed = rows.filter(row => !/^(behavior|---|-+) \|/.test(row))
  expect(listed).toEqual(behaviors.map(row => `${row.behavior} | ${row.suites.join(', ')}`))
})
