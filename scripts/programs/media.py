"""Sound, pictures, film, and programs with a window that can do without."""
import hashlib
import re
import struct

from .trial import program

MEDIA, DESKTOP = "media", "desktop"
WIDTH, HEIGHT = 320, 240
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="150"><rect width="90" height="60" fill="#c33"/>' \
    '<circle cx="120" cy="80" r="50" fill="#36c" opacity="0.6"/><path d="M10 140 Q 90 20 190 130" stroke="#000"/></svg>'
PAGE = '<!DOCTYPE html><meta charset="utf-8"><title>t</title><style>body { background: #cde }</style>' \
    '<h1 id="a">-</h1><script>let s = 0; for (let i = 0; i < 1e6; i++) s += i % 7;' \
    "document.getElementById('a').textContent = 'sum ' + s;</script>"
SCENE = "camera { location <0, 2, -6> look_at <0, 1, 0> } light_source { <5, 9, -9> color rgb 1 } " \
    "sphere { <0, 1, 0>, 1 pigment { color rgb <1, .4, .2> } finish { reflection .3 phong 1 } } " \
    "plane { y, 0 pigment { checker rgb 0 rgb 1 } }\n"
DOT = "digraph g {" + "".join(f"n{i} -> n{i * 7 % 61};" for i in range(120)) + "}"
TEXT = "A heading\n\nThe quick brown fox jumps over the lazy dog.\n\n" + "One more line of text.\n" * 80


def picture(trial):
    path = trial.file("in.ppm")
    path.write_bytes(b"P6 %d %d 255\n" % (WIDTH, HEIGHT) + bytes(
        value & 255 for y in range(HEIGHT) for x in range(WIDTH) for value in (x, y * 2, x * y >> 4)))
    return path


def painted(trial, name):
    """What a PPM file shows, without the comments that say when it was made."""
    trial.digest(name)
    return hashlib.sha256((trial.place / name).read_bytes().partition(b"\n255\n")[2]).hexdigest()


def film(trial):
    """Two seconds, uncompressed."""
    path = trial.file("in.y4m")
    planes = [bytes((x * 3 + y + n * 7) & 255 for y in range(HEIGHT) for x in range(WIDTH)) for n in range(24)]
    colours = bytes([128]) * (WIDTH * HEIGHT // 2)
    path.write_bytes(b"YUV4MPEG2 W%d H%d F12:1 Ip A1:1 C420jpeg\n" % (WIDTH, HEIGHT)
                     + b"".join(b"FRAME\n" + planes[n % 24] + colours for n in range(24)))
    return path


def sound(trial):
    path = trial.file("in.wav")
    samples = b"".join(struct.pack("<h", int((n * n // 97) % 20000 - 10000)) for n in range(44100 * 2))
    shape = struct.pack("<IHHIIHH", 16, 1, 1, 44100, 88200, 2, 16)
    path.write_bytes(b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + shape
                     + b"data" + struct.pack("<I", len(samples)) + samples)
    return path


@program("ffmpeg", "ffmpeg", MEDIA)
def ffmpeg(trial):
    flags = ("-fflags", "+bitexact", "-flags:v", "+bitexact")
    trial.program("ffmpeg", "-v", "error", "-i", film(trial), "-i", sound(trial),
                  "-vf", "scale=640:480,boxblur=2", "-c:v", "mpeg4", "-threads", 4, "-c:a", "flac",
                  "-bitexact", *flags, "out.mkv")
    return trial.program("ffmpeg", "-v", "error", "-threads", 4, "-i", "out.mkv", "-f", "md5", "-bitexact", "-")


@program("x264", "x264", MEDIA)
def x264(trial):
    trial.program("x264", "--quiet", "--no-progress", "--threads", 4, "--preset", "fast", "-o", "out.264", film(trial))
    return trial.digest("out.264")


@program("x265", "x265", MEDIA)
def x265(trial):
    trial.program("x265", "--y4m", "--preset", "superfast", "--frame-threads", 2, "--pools", 4,
                  film(trial), "-o", "out.265")
    return trial.digest("out.265")


@program("HandBrakeCLI", "handbrake-cli ffmpeg", MEDIA)
def handbrake(trial):
    trial.tool("ffmpeg", "-v", "error", "-i", film(trial), "-c:v", "mpeg4", "in.mp4")
    trial.program("HandBrakeCLI", "-i", "in.mp4", "-o", "out.mkv", "-e", "x264",
                  "--encoder-preset", "veryfast", "-q", 25)
    return trial.tool("ffprobe", "-v", "error", "-count_frames", "-show_entries",
                      "stream=codec_name,width,height,nb_read_frames", "out.mkv")


@program("vlc", "vlc-bin vlc-plugin-base", MEDIA)
def vlc(trial):
    trial.program("cvlc", "-q", "-I", "dummy", sound(trial),
                  "--sout", "#std{access=file,mux=wav,dst=out.wav}", "vlc://quit")
    return trial.digest("out.wav")


@program("sox", "sox", MEDIA)
def sox(trial):
    trial.program("sox", "--multi-threaded", "-R", sound(trial), "out.wav",
                  "rate", "-v", "48k", "reverb", "echo", "0.8", "0.7", "20", "0.3")
    return trial.digest("out.wav")


@program("espeak-ng", "espeak-ng", MEDIA)
def espeak(trial):
    trial.program("espeak-ng", "-w", "out.wav", "One lock is held, and another one is not.")
    return trial.digest("out.wav")


@program("ImageMagick", "imagemagick", MEDIA)
def imagemagick(trial):
    trial.program("convert", picture(trial), "-resize", "900x700", "-blur", "0x4", "-rotate", "33", "-strip",
                  "out.ppm", env={"MAGICK_THREAD_LIMIT": 4})
    return trial.digest("out.ppm")


@program("tesseract", "tesseract-ocr tesseract-ocr-eng imagemagick fonts-dejavu-core", MEDIA)
def tesseract(trial):
    trial.tool("convert", "-size", "900x120", "-pointsize", "48", "-gravity", "center",
               "-font", "DejaVu-Sans", "label:The lock is free", "in.png")
    return trial.program("tesseract", "in.png", "-", "-l", "eng")


@program("darktable-cli", "darktable imagemagick", MEDIA)
def darktable(trial):
    trial.tool("convert", picture(trial), "in.png")
    trial.program("darktable-cli", "in.png", "out.png", "--core", "--configdir", trial.directory("config"),
                  "--disable-opencl", "-t", 4)
    return trial.tool("identify", "-format", "%w %h %#", "out.png")


@program("povray", "povray", MEDIA)
def povray(trial):
    trial.program("povray", f"+I{trial.file('in.pov', SCENE)}", "+Oout.ppm", "+FP",
                  "+W320", "+H240", "-D", "+WT4", "+A", "-J")
    return painted(trial, "out.ppm")


@program("blender", "blender", MEDIA)
def blender(trial):
    script = "import bpy; bpy.ops.mesh.primitive_monkey_add(); o = bpy.context.object; " \
        "m = o.modifiers.new('s', 'SUBSURF'); m.levels = 3; d = bpy.context.evaluated_depsgraph_get(); " \
        "print('vertices', len(o.evaluated_get(d).to_mesh().vertices))"
    said = trial.program("blender", "-b", "--factory-startup", "-t", 4, "--python-exit-code", 3,
                         "--python-expr", script)
    return "".join(re.findall(r"vertices \d+", said))


@program("ghostscript", "ghostscript", MEDIA)
def ghostscript(trial):
    source = trial.file("in.ps", "%!PS\n/Helvetica findfont 40 scalefont setfont 72 400 moveto (locks) show "
                        "100 100 200 150 rectfill showpage\n")
    trial.program("gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=ppmraw", "-dNumRenderingThreads=4",
                  "-dBandHeight=64", "-dMaxBitmap=0", "-r100", "-sOutputFile=out.ppm", source)
    return trial.digest("out.ppm")


@program("pdftoppm", "poppler-utils ghostscript", MEDIA)
def pdftoppm(trial):
    source = trial.file("in.ps", "%!PS\n/Times-Roman findfont 30 scalefont setfont 72 500 moveto (pages) show "
                        "showpage\n")
    trial.tool("gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", "-sOutputFile=in.pdf", source)
    trial.program("pdftoppm", "-r", 90, "in.pdf", "out")
    return trial.digest("out-1.ppm")


@program("gnuplot", "gnuplot-nox", MEDIA)
def gnuplot(trial):
    trial.program("gnuplot", "-e", "set terminal png; set output 'out.png'; set samples 2000; splot sin(x) * cos(y)")
    return trial.digest("out.png")


@program("graphviz", "graphviz", MEDIA)
def graphviz(trial):
    return trial.program("dot", "-Tsvg", trial.file("in.dot", DOT)) + trial.program("neato", "-Tplain", "in.dot")


@program("gimp", "gimp", DESKTOP)
def gimp(trial):
    picture(trial)
    batch = '(let* ((i (car (gimp-file-load RUN-NONINTERACTIVE "in.ppm" "in.ppm")))' \
        '(d (car (gimp-image-flatten i)))) (plug-in-gauss RUN-NONINTERACTIVE i d 9 9 0)' \
        '(file-ppm-save RUN-NONINTERACTIVE i d "out.ppm" "out.ppm" 1) (gimp-quit 0))'
    trial.program("gimp-console-2.10", "-i", "-n", "--no-data", "--no-fonts", "-b", batch)
    return painted(trial, "out.ppm")


@program("inkscape", "inkscape imagemagick", DESKTOP)
def inkscape(trial):
    trial.program("inkscape", trial.file("in.svg", SVG), "--export-type=png", "--export-filename=out.png")
    return trial.tool("identify", "-format", "%w %h %#", "out.png")


@program("firefox", "firefox-esr imagemagick", DESKTOP)
def firefox(trial):
    page = trial.file("in.html", PAGE)
    trial.program("firefox-esr", "--headless", "--no-remote", "--profile", trial.directory("profile"),
                  "--window-size=400,300", "--screenshot", trial.place / "out.png", f"file://{page}")
    return trial.tool("identify", "-format", "%w %h %#", "out.png")


@program("chromium", "chromium", DESKTOP)
def chromium(trial):
    return trial.program("chromium", "--headless", "--disable-gpu", "--no-first-run",
                         f"--user-data-dir={trial.directory('profile')}", "--dump-dom",
                         f"file://{trial.file('in.html', PAGE)}")


@program("libreoffice", "libreoffice-writer-nogui", DESKTOP)
def libreoffice(trial):
    trial.program("soffice", f"-env:UserInstallation=file://{trial.place}/office", "--headless", "--convert-to", "html",
                  "--outdir", "out", trial.file("in.txt", TEXT))
    return trial.digest("out/in.html")
