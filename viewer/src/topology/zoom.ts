// Which part of a picture is seen: wheel, mouse and keys change it.

export class Zoom {
  private view = [0, 0, 1, 1];
  private size = [1, 1];
  private held: {x: number; y: number; view: number[]} | null = null;
  moved = false;  // since the button went down: not a click

  constructor(private readonly picture: SVGSVGElement, private readonly changed: () => void) {
    picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.by(event.deltaY < 0 ? 0.8 : 1.25, this.place(event));
    }, {passive: false});
    picture.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.held = {x: event.clientX, y: event.clientY, view: [...this.view]};
      this.moved = false;
    });
    picture.addEventListener("pointermove", (event) => this.drag(event));
    for (const over of ["pointerup", "pointerleave"] as const)
      picture.addEventListener(over, () => { this.held = null; });
  }

  fit(width: number, height: number): void {
    this.size = [width, height];
    this.view = [0, 0, width, height];
    this.show();
  }
  // Keeps what is seen when the picture grows.
  resize(width: number, height: number): void {
    const all = this.view[2]! >= this.size[0]! * 0.999;
    if (all) return this.fit(width, height);
    this.size = [width, height];
  }
  all(): void { this.fit(this.size[0]!, this.size[1]!); }
  by(factor: number, at = [this.view[0]! + this.view[2]! / 2, this.view[1]! + this.view[3]! / 2]):
      void {
    const [x, y] = at as [number, number], [vx, vy, vw] = this.view as [number, number, number];
    const width = Math.max(this.size[0]! / 60, Math.min(this.size[0]!, vw * factor));
    if (width === this.size[0]) return this.all();
    const scale = width / vw;
    this.view = [x - (x - vx) * scale, y - (y - vy) * scale, width, this.view[3]! * scale];
    this.show();
  }
  pan(dx: number, dy: number): void {
    this.view[0]! += dx * this.view[2]!;
    this.view[1]! += dy * this.view[3]!;
    this.show();
  }
  // Brings a place into sight.
  reveal(x: number, y: number): void {
    const [vx, vy, vw, vh] = this.view as [number, number, number, number];
    if (x < vx || x > vx + vw) this.view[0] = x - vw / 2;
    if (y < vy || y > vy + vh) this.view[1] = y - vh / 2;
    this.show();
  }
  place(event: MouseEvent): [number, number] {
    const matrix = this.picture.getScreenCTM();
    if (!matrix) return [0, 0];
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    return [at.x, at.y];
  }
  // How many units of the picture a pixel is.
  get pixel(): number { return 1 / (this.picture.getScreenCTM()?.a || 1); }

  private drag(event: PointerEvent): void {
    if (!this.held) return;
    const [dx, dy] = [event.clientX - this.held.x, event.clientY - this.held.y];
    if (Math.abs(dx) + Math.abs(dy) > 4) this.moved = true;
    if (!this.moved) return;
    const pixel = this.pixel;
    this.view[0] = this.held.view[0]! - dx * pixel;
    this.view[1] = this.held.view[1]! - dy * pixel;
    this.show();
  }
  private show(): void {
    this.picture.setAttribute("viewBox", this.view.map((v) => v.toFixed(2)).join(" "));
    this.changed();
  }
}
