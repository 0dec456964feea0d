import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { wrongTokensName } from '../packages/gateway/src/admin/server/metrics.ts'
import { httpMeasures } from '../packages/gateway/src/telemetry/http-measures.ts'
import { durationName, measures } from '../packages/limiter/src/metrics/measure.ts'
import { selectorsIn } from './helpers/promql.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string }[]
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly links?: readonly { readonly title: string }[]
}
interface Dashboard {
  readonly panels: readonly Panel[]
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] }
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] }
}

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const { panels, annotations, templating } = JSON.parse(read('deploy/grafana/diana.json')) as Dashboard
const expressions = [
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...annotations.list.map(({ expr }) => expr),
]
const variables = templating.list.map(({ name }) => name)

const histograms = [
  durationName.name,
  ...httpMeasures.filter(({ kind }) => kind === 'histogram').map(({ name }) => name),
]
const all = [durationName, ...measures, ...httpMeasures, wrongTokensName].map(({ name }) => name)

test('docs/metrics.md names every metric', () => {
  const page = read('docs/metrics.md')
  expect(all.filter(name => !page.includes(`\`${name}\``))).toEqual([])
})

describe('the Grafana dashboard', () => {
  it('the Grafana dashboard shows every metric, and no other', () => {
    const asked = new Set(expressions.flatMap(selectorsIn).map(({ metric }) => metric.replace(/_bucket$/, '')))
    expect([...asked].sort()).toEqual(all.toSorted())
    const buckets = expressions.flatMap(selectorsIn).filter(({ metric }) => metric.endsWith('_bucket'))
    expect(buckets.filter(({ metric }) => !histograms.includes(metric.replace(/_bucket$/, '')))).toEqual([])
  })

  it('the queries of the Grafana dashboard are valid PromQL, and use variables that exist', () => {
    const used = expressions.flatMap(expr => [...expr.matchAll(/\$(\w+)/g)].map(match => match[1]!))
    expect(used.filter(name => ![...variables, '__rate_interval'].includes(name))).toEqual([])
    const folder = mkdtempSync(join(tmpdir(), 'diana-grafana-'))
    const rules = expressions.map((expr, i) => {
      const filled = expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$\w+/g, '.*')
      return { record: `diana:panel_${i}`, expr: filled }
    })
    const path = join(folder, 'rules.yaml')
    writeFileSync(path, stringify({ groups: [{ name: 'panels', rules }] }))
    expect(execFileSync('promtool', ['check', 'rules', path], { encoding: 'utf8' })).toContain(
      `${rules.length} rules found`,
    )
    rmSync(folder, { recursive: true })
  })

  it('the panels of the Grafana dashboard do not overlap, have unique ids, and say what they show', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
    const drawn = panels.filter(({ type }) => type !== 'row')
    expect(drawn.filter(({ description = '', fieldConfig }) => !description || !fieldConfig?.defaults.unit)).toEqual([])
  })

  it('each alert is linked from a panel of the Grafana dashboard, and each link names an alert', () => {
    const names = [...read('deploy/prometheus/diana-alerts.yaml').matchAll(/^ *- alert: (\w+)$/gm)].map(one => one[1]!)
    const linked = new Set(panels.flatMap(({ links = [] }) => links.map(({ title }) => title)))
    expect([...linked].sort()).toEqual(names.toSorted())
  })

  it('the panels that docs/alerts.md names are on the Grafana dashboard', () => {
    const named = [...read('docs/alerts.md').matchAll(/\bpanel \*([^*]+)\*/g)].map(one => one[1]!.replace(/\s+/g, ' '))
    const titles = panels.map(({ title }) => title)
    expect(named.length).toBeGreaterThan(3)
    expect(named.filter(title => !titles.includes(title))).toEqual([])
  })

  it('the files for provisioning name a Prometheus and a folder of dashboards', () => {
    const { datasources } = parse(read('deploy/grafana/provisioning/datasource.yaml')) as { datasources: unknown[] }
    expect(datasources).toMatchObject([{ type: 'prometheus', url: expect.stringContaining('http://') }])
    const { providers } = parse(read('deploy/grafana/provisioning/dashboards.yaml')) as { providers: unknown[] }
    expect(providers).toMatchObject([{ type: 'file', options: { path: expect.any(String) } }])
  })
})
