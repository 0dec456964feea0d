import { execFileSync } from 'node:child_process'
import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { registerMetrics } from './prom-client.ts'

async function measuredLimiter() {
  const limiter = await createLimiter({
    rules: [
      { id: 'each', by: 'ip', limit: '3/m' },
      { id: 'shy', limit: '2/m', whenFull: 'shadow' },
      { id: 'never', match: { path: '/never' }, limit: '2/m' },
    ],
  })
  onTestFinished(() => limiter.close())
  for (let i = 0; i < 256; i++) await limiter.check({ method: 'GET', path: '/secret-path', ip: '203.0.113.77' })
  return limiter
}

async function scrape(registry: Registry): Promise<Map<string, string>> {
  const lines = (await registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(lines.map(line => line.split(/ (?=\S+$)/) as [string, string]))
}

describe('the metrics of a limiter', () => {
  it('the metrics of a limiter equal its statistics', async () => {
    const registry = new Registry()
    registerMetrics(await measuredLimiter(), registry)
    const metrics = await scrape(registry)
    expect(Object.fromEntries([...metrics].filter(([name]) => /^diana_(calls|requests)/.test(name)))).toEqual({
      'diana_calls_total{decision="allow"}': '3',
      'diana_calls_total{decision="deny"}': '253',
      'diana_requests_total{rule="each",decision="allow"}': '3',
      'diana_requests_total{rule="each",decision="deny"}': '253',
      'diana_requests_total{rule="shy",decision="allow"}': '2',
      'diana_requests_total{rule="shy",decision="deny"}': '0',
      'diana_requests_total{rule="shy",decision="shadow_deny"}': '1',
      // a rate would miss the first refusal of a rule whose series begins with it
      'diana_requests_total{rule="never",decision="allow"}': '0',
      'diana_requests_total{rule="never",decision="deny"}': '0',
    })
    expect(metrics.get('diana_rules')).toBe('3')
    expect(metrics.get('diana_decision_duration_seconds_count{store="memory"}')).toBe('2')
    expect(metrics.get('diana_decision_duration_seconds_bucket{le="+Inf",store="memory"}')).toBe('2')
  })

  it('of more than a thousand rules only those with calls have series', async () => {
    const rules = Array.from({ length: 1001 }, (_, i) => ({ id: `r${i}`, match: { path: `/${i}` }, limit: '2/m' }))
    const limiter = await createLimiter({ rules })
    onTestFinished(() => limiter.close())
    await limiter.check({ method: 'GET', path: '/7' })
    const registry = new Registry()
    registerMetrics(limiter, registry)
    const names = [...(await scrape(registry)).keys()].filter(name => name.startsWith('diana_requests_total'))
    expect(names).toEqual([
      'diana_requests_total{rule="r7",decision="allow"}',
      'diana_requests_total{rule="r7",decision="deny"}',
    ])
  })

  it('the metrics of a limiter name no caller, address or path', async () => {
    const registry = new Registry()
    registerMetrics(await measuredLimiter(), registry)
    const text = await registry.metrics()
    expect(text).not.toContain('203.0')
    expect(text).not.toContain('secret-path')
  })

  it('promtool accepts the metrics of a limiter', async () => {
    const registry = new Registry()
    registerMetrics(await measuredLimiter(), registry)
    const input = await registry.metrics()
    expect(execFileSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })).toBe('')
  })

  it('the metrics of a limiter are available as OpenMetrics', async () => {
    const registry = new Registry()
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
    registerMetrics(await measuredLimiter(), registry)
    const text = await registry.metrics()
    expect(text).toContain('# TYPE diana_requests counter')
    expect(text).toContain('diana_requests_total{rule="each",decision="deny"} 253')
    expect(text.endsWith('# EOF\n')).toBe(true)
  })
})
