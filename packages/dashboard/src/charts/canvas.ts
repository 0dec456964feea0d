/** Fits a canvas to its box and to the screen's pixels; undefined where it cannot be seen. */
export function prepare(
  canvas: HTMLCanvasElement,
): { context: CanvasRenderingContext2D; width: number; height: number } | undefined {
  const { clientWidth: width, clientHeight: height } = canvas
  const context = canvas.getContext('2d')
  if (context === null || width === 0 || height === 0) return undefined
  const ratio = devicePixelRatio || 1
  const [pixelsWide, pixelsHigh] = [Math.round(width * ratio), Math.round(height * ratio)]
  if (canvas.width !== pixelsWide || canvas.height !== pixelsHigh) {
    canvas.width = pixelsWide
    canvas.height = pixelsHigh
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  return { context, width, height }
}
