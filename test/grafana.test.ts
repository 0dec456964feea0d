import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { stringify } from 'yaml'
import { httpMeasures } from '../packages/gateway/src/telemetry/http-measures.ts'
import { durationName, measures } from '../packages/limiter/src/metrics/measure.ts'

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string }[]
}

const file = new URL('../docs/grafana-dashboard.json', import.meta.url)
const dashboard = JSON.parse(readFileSync(file, 'utf8')) as { readonly panels: readonly Panel[] }
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

const histograms = [
  durationName.name,
  ...httpMeasures.filter(({ kind }) => kind === 'histogram').map(({ name }) => name),
]

test('docs/metrics.md names every metric', () => {
  const page = readFileSync(new URL('../docs/metrics.md', import.meta.url), 'utf8')
  const names = [durationName, ...measures, ...httpMeasures].map(({ name }) => name)
  expect(names.filter(name => !page.includes(`\`${name}\``))).toEqual([])
})

describe('the Grafana dashboard', () => {
  it('the Grafana dashboard uses existing metrics, and all metrics of calls', () => {
    const asked = new Set(expressions.flatMap(expr => expr.match(/diana_[a-z_]+/g)!))
    const known = [...measures, ...httpMeasures].map(({ name }) => name)
    known.push(...histograms.map(name => `${name}_bucket`))
    expect([...asked].filter(name => !known.includes(name))).toEqual([])
    expect([...asked]).toEqual(expect.arrayContaining(['diana_calls_total', 'diana_requests_total', 'diana_waiting']))
  })

  it('the queries of the Grafana dashboard are valid PromQL', () => {
    const folder = mkdtempSync(join(tmpdir(), 'diana-grafana-'))
    const rules = expressions.map((expr, i) => {
      const filled = expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$(?:instance|rule)/g, '.*')
      return { record: `diana:panel_${i}`, expr: filled }
    })
    const path = join(folder, 'rules.yaml')
    writeFileSync(path, stringify({ groups: [{ name: 'panels', rules }] }))
    expect(execFileSync('promtool', ['check', 'rules', path], { encoding: 'utf8' })).toContain(
      `${rules.length} rules found`,
    )
    rmSync(folder, { recursive: true })
  })

  it('the panels of the Grafana dashboard do not overlap, and have unique ids', () => {
    const { panels } = dashboard
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
  })
})
