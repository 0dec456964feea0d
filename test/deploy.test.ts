import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { algorithms, dimensions, sources } from 'diana-limiter'
import { formatMistake, parseText } from 'diana-limiter/schema'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type GatewaySettings, gatewaySection } from '../packages/gateway/src/gateway.ts'
import { serveSection } from '../packages/gateway/src/serve/serve-settings.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, 'deploy', path), 'utf8')

function settingsIn(path: string): GatewaySettings {
  const vocabulary = { algorithms, dimensions, sources, sections: [gatewaySection] }
  const { document, mistakes } = parseText(read(path), path, vocabulary)
  expect(mistakes.map(formatMistake)).toEqual([])
  return document!.sections!.gateway as GatewaySettings
}

const seconds = (text: string): number => Number(/^(\d+)s$/.exec(text)![1])

describe('the image', () => {
  const lines = read('Dockerfile')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter(line => /^[A-Z]/.test(line))
  const of = (word: string): string[] => lines.filter(line => line.startsWith(`${word} `))

  it('the image copies files that exist', () => {
    const [first] = of('COPY').filter(line => !line.includes('--from='))
    const names = of('COPY')
      .filter(line => !line.includes('--from='))
      .flatMap(line => line.split(/\s+/).slice(1, -1))
    expect(first).toContain('package-lock.json')
    expect(names.filter(name => !existsSync(join(root, name)))).toEqual([])
    const kept = read('Dockerfile.dockerignore')
      .split('\n')
      .filter(line => line.startsWith('!'))
      .map(line => line.slice(1))
    expect(names.filter(name => !kept.includes(name))).toEqual([])
  })

  it('the image has two stages, runs as an unprivileged user, has a health check, and starts an existing command', () => {
    expect(of('FROM')).toHaveLength(2)
    expect(lines.lastIndexOf('USER 65534:65534')).toBeGreaterThan(lines.findLastIndex(line => line.startsWith('FROM')))
    expect(of('HEALTHCHECK')).toHaveLength(1)
    const [, program] = JSON.parse(of('ENTRYPOINT')[0]!.slice('ENTRYPOINT '.length)) as string[]
    // the built packages stand in node_modules there
    expect(existsSync(join(root, program!.replace('node_modules/diana-gateway', 'build/diana-gateway')))).toBe(true)
  })

  it('the health check of the image is an existing program', () => {
    const [, , script] = JSON.parse(/CMD (\[.*\])/.exec(of('HEALTHCHECK')[0]!)![1]!) as string[]
    const { status, stderr } = spawnSync(process.execPath, ['-e', script!.replace('8081', '1')])
    expect([status, String(stderr)]).toEqual([1, ''])
  })
})

describe('the compose file', () => {
  interface Service {
    readonly image: string
    readonly volumes?: readonly string[]
    readonly depends_on?: Readonly<Record<string, unknown>>
    readonly build?: { readonly context: string; readonly dockerfile: string }
    readonly stop_grace_period?: string
  }
  interface Compose {
    readonly services: Readonly<Record<string, Service & { readonly command?: readonly string[] }>>
    readonly volumes: Readonly<Record<string, unknown>>
  }
  const { services, volumes: named } = parse(read('compose/compose.yaml'), { merge: true }) as Compose

  it('the compose file starts two gateways, Redis, etcd and a service, and names only existing things', () => {
    expect(Object.keys(services)).toEqual(['gateway-1', 'gateway-2', 'redis', 'etcd', 'service'])
    for (const { depends_on = {}, volumes = [], build } of Object.values(services)) {
      for (const name of Object.keys(depends_on)) expect(services).toHaveProperty(name)
      for (const volume of volumes) {
        const [source] = volume.split(':')
        if (source!.startsWith('.')) expect(existsSync(join(root, 'deploy/compose', source!))).toBe(true)
        else expect(named).toHaveProperty(source!)
      }
      if (build) expect(existsSync(join(root, 'deploy/compose', build.context, build.dockerfile))).toBe(true)
    }
  })

  it('the Redis of the compose file keeps its counts in a volume, and evicts none', () => {
    const { command = [], volumes } = services.redis!
    expect(command.join(' ')).toContain('--appendonly yes')
    expect(command.join(' ')).toContain('--maxmemory-policy noeviction')
    expect(volumes).toEqual(['redis-data:/data'])
  })

  it('the compose file has valid rules with the addresses of its services, and time for calls to finish', () => {
    const { routes, shutdown } = settingsIn('compose/diana.yaml')
    const { store, remote } = parse(read('compose/diana.yaml')) as {
      store: { redis: string }
      remote: { etcd: string }
    }
    for (const url of [store.redis, remote.etcd, ...routes.flatMap(({ to }) => to)]) {
      expect(services).toHaveProperty(new URL(url).hostname)
    }
    const { delayMs, timeoutMs } = shutdown
    expect(seconds(services['gateway-1']!.stop_grace_period!) * 1000).toBeGreaterThan(delayMs + timeoutMs)
  })
})

describe('the unit of systemd', () => {
  const unit = read('systemd/diana.service')

  it('the systemd unit allows the memory protection calls of Node, and fails other system calls with an error', () => {
    expect(unit).toMatch(/^SystemCallFilter=.*@pkey/m)
    expect(unit).toContain('SystemCallErrorNumber=EPERM')
  })

  it('systemd accepts the unit, if systemd is installed', () => {
    const paths = ['service', 'socket'].map(kind => join(root, `deploy/systemd/diana.${kind}`))
    const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', ...paths], { encoding: 'utf8' })
    // on a machine without systemd, at least every line is a section or a word with a value
    if (error) expect(unit.split('\n').filter(line => !/^(?:$|#|\[\w+\]$|\w+=)/.test(line))).toEqual([])
    else expect([status, stderr]).toEqual([0, ''])
  })

  it('the systemd unit notifies, has a watchdog, and reloads by replacement', () => {
    for (const line of ['Type=notify', 'NotifyAccess=all', 'ExecReload=kill -USR2 $MAINPID']) {
      expect(unit.split('\n')).toContain(line)
    }
    expect(seconds(/^WatchdogSec=(\S+)$/m.exec(unit)![1]!)).toBeGreaterThan(10)
  })

  it('the systemd unit runs as a dynamic user without write access, and waits for calls to finish', () => {
    for (const line of ['DynamicUser=yes', 'ProtectSystem=strict', 'NoNewPrivileges=yes', 'KillMode=mixed']) {
      expect(unit.split('\n')).toContain(line)
    }
    expect(seconds(/^TimeoutStopSec=(\S+)$/m.exec(unit)![1]!)).toBeGreaterThan(30)
  })

  it('the systemd unit has the folder in which the docs keep the state', () => {
    const [, folder] = /^StateDirectory=(\S+)$/m.exec(unit)!
    expect(readFileSync(join(root, 'docs/admin.md'), 'utf8')).toContain(`state: /var/lib/${folder} `)
    expect(unit.split('\n')).toContain('StateDirectoryMode=0700')
  })
})

describe('the manifests of Kubernetes', () => {
  interface Manifest {
    readonly apiVersion: string
    readonly kind: string
    readonly spec?: { readonly template: { readonly spec: PodSpec } }
  }
  interface PodSpec {
    readonly terminationGracePeriodSeconds: number
    readonly securityContext: object
    readonly containers: readonly [Container]
    readonly volumes: readonly { readonly name: string }[]
  }
  interface Container {
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
    readonly volumeMounts: readonly { readonly name: string }[]
    readonly securityContext: object
    readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } }
  }
  const names = readdirSync(join(root, 'deploy/kubernetes')).filter(name => name !== 'diana.yaml')
  const manifests = new Map(names.map(name => [name, parse(read(`kubernetes/${name}`)) as Manifest]))
  const { spec } = manifests.get('deployment.yaml')!.spec!.template
  const [container] = spec.containers

  it('the kustomization names all Kubernetes manifests, which have known kinds', () => {
    const { resources } = parse(read('kubernetes/kustomization.yaml')) as { resources: string[] }
    expect([...resources, 'kustomization.yaml'].sort()).toEqual(names.sort())
    expect([...manifests.values()].map(({ apiVersion, kind }) => `${apiVersion} ${kind}`).sort()).toEqual([
      'apps/v1 Deployment',
      'kustomize.config.k8s.io/v1beta1 Kustomization',
      'networking.k8s.io/v1 NetworkPolicy',
      'policy/v1 PodDisruptionBudget',
      'v1 Namespace',
      'v1 Service',
    ])
  })

  it('the probes of the Kubernetes manifests use ports and paths that the gateway serves', () => {
    const { listen, admin } = settingsIn('kubernetes/diana.yaml')
    const ports = Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort]))
    expect(ports).toEqual({ http: listen.port, admin: admin?.port })
    expect(
      [container.startupProbe, container.readinessProbe, container.livenessProbe].map(probe => probe!.httpGet),
    ).toEqual([
      { path: '/readyz', port: 'admin' },
      { path: '/readyz', port: 'admin' },
      { path: '/healthz', port: 'admin' },
    ])
  })

  it('the Kubernetes manifests run unprivileged with a read-only file system, and wait for calls to finish', () => {
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_534 })
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
    const mounted = container.volumeMounts.map(({ name }) => name)
    expect(spec.volumes.map(({ name }) => name)).toEqual(mounted)
    const { delayMs, timeoutMs } = settingsIn('kubernetes/diana.yaml').shutdown
    expect(spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(delayMs + timeoutMs)
  })
})

describe('the configurations of proxies that ask a decision server', () => {
  const page = readFileSync(join(root, 'docs/decision-server.md'), 'utf8')
  const shown = [...page.matchAll(/<!-- file: deploy\/(\S+) -->\n```\w*\n([\s\S]*?)```/g)]

  it('the page of the decision server shows the files as they are', () => {
    expect(shown.map(([, path]) => path)).toEqual([
      ...['nginx/diana.conf', 'caddy/Caddyfile', 'haproxy/haproxy.cfg', 'haproxy/diana-spoe.conf'],
    ])
    for (const [, path, text] of shown) expect(text).toBe(read(path!))
  })

  it('the rule file for them is valid, and the others are YAML that names its ports', () => {
    const vocabulary = { algorithms, dimensions, sources, sections: [serveSection] }
    const { document, mistakes } = parseText(read('diana-serve.yaml'), 'diana-serve.yaml', vocabulary)
    expect(mistakes.map(formatMistake)).toEqual([])
    expect(document!.sections!.serve).toMatchObject({
      listen: { port: 8082 },
      grpc: { port: 8083 },
      spoe: { port: 8084 },
    })
    expect(JSON.stringify(parse(read('traefik/dynamic.yaml')))).toContain('http://127.0.0.1:8082/check')
    expect(JSON.stringify(parse(read('envoy/envoy.yaml')))).toContain('"port_value":8083')
  })
})

describe('the configuration of Prometheus', () => {
  interface Prometheus {
    readonly rule_files: readonly string[]
    readonly scrape_configs: readonly {
      readonly job_name: string
      readonly static_configs: readonly { readonly targets: readonly string[] }[]
    }[]
  }
  const { rule_files, scrape_configs } = parse(read('prometheus/prometheus.yml')) as Prometheus

  it('Prometheus loads rules that exist, and scrapes the admin port under the name that alerts look for', () => {
    expect(rule_files.filter(name => !existsSync(join(root, 'deploy/prometheus', name)))).toEqual([])
    expect(read('prometheus/diana-alerts.yaml')).toContain(`up{job="${scrape_configs[0]!.job_name}"}`)
    const { admin } = settingsIn('kubernetes/diana.yaml')
    expect(scrape_configs[0]!.static_configs[0]!.targets).toEqual([`127.0.0.1:${admin?.port}`])
  })
})
